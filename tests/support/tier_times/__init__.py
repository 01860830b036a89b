"""Searches by time in tiered topics whose records have bad times, beside a list of all records."""
