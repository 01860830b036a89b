"""Threads and loops whose order a seed decides."""
