"""Transactions whose partitions are led by several nodes of a fleet, and meet in its rows."""
