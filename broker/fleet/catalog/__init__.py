"""Rows of a fleet: the port to them, and PostgreSQL behind it."""
