"""Brokers that are one under faults, and the verdict record by record."""
