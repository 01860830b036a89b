"""Cells about a tier: what it takes from producers and readers, and how times are found in it."""
