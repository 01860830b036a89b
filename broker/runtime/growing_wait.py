"""Waits between tries of what keeps failing: each twice as long as the last, up to a limit."""

MOST_DOUBLINGS = 20
"""Without a bound the number would be too large one day."""


def growing_wait(first_seconds: float, longest_seconds: float, failures: int) -> float:
    """The wait, in seconds, after so many failures in a row, the first of which counts as 1.

    The limit is less than a million times the first wait.
    """
    return min(first_seconds * 2.0 ** min(failures - 1, MOST_DOUBLINGS), longest_seconds)
