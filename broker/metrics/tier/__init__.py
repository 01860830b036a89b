"""Metrics of the tier."""
