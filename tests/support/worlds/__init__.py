"""Brokers as tests need them: in process, as a process, with neither network nor disk."""
