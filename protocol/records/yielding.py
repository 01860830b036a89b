"""A pause for other threads in the middle of a long piece of compiled work.

To release the lock of the interpreter and take it again at once lets nobody in: who waits for it
wakes later than that, and never gets to ask for it, since each release starts his wait anew.
"""

import time

PAUSE_SECONDS = 0.00002
"""Longer than it takes another thread to wake; with the timer's slack about 0.1 ms."""


def let_others_run() -> None:
    """Be out of the interpreter long enough for another thread to come in."""
    time.sleep(PAUSE_SECONDS)
