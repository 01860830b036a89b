"""Seeded histories of topics and logs, models of them, comparisons."""
