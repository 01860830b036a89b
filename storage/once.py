"""Things that are made when they are first asked for, on whichever thread that is: one wins."""

from threading import Lock

LOCK = Lock()
"""Held for an assignment only, never while anything is read or made."""
