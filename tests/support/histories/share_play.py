"""One history of a share partition by its seed: with a delay, or without."""

from tests.support.histories.delay_history import DelayHistory
from tests.support.histories.share_history import ShareHistory


def play(seed: int) -> None:
    """AssertionError with what is wrong; the same seed, the same history."""
    kind = DelayHistory if seed % 3 == 2 else ShareHistory
    kind(seed).play()
