"""A pause for other threads in the middle of a long piece of compiled work.

Releasing the lock of the interpreter and taking it again at once lets no other thread in: a waiting
thread wakes later than that, and never gets the lock, since each release starts its wait again.
"""

import time

PAUSE_SECONDS = 0.00002
"""Longer than it takes another thread to wake; with the timer's slack about 0.1 ms."""


def let_others_run() -> None:
    """Be out of the interpreter long enough for another thread to come in."""
    time.sleep(PAUSE_SECONDS)
