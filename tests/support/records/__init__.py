"""Logs and partition directories with known records."""
