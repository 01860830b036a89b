"""Distance of a node's clock from the catalog's."""

from broker.fleet.pacing import LOOKS, ClockGap


def test_the_quickest_answer_counts() -> None:
    gap = ClockGap()
    assert gap.ahead_ms is None
    gap.seen(10_000, 9_000, 10_400)
    assert (gap.ahead_ms, gap.known) == (1200, (200.0, 1200.0))
    gap.seen(20_000, 19_000, 20_010)
    assert gap.ahead_ms == 1005
    gap.seen(30_000, 31_000, 30_900)
    assert gap.ahead_ms == 1005


def test_a_clock_that_was_set_is_followed() -> None:
    gap = ClockGap()
    gap.seen(10_000, 10_000, 10_000)
    gap.seen(20_000, 20_000, 5_000)  # set back while it waited for the answer
    assert gap.ahead_ms == 0
    for _ in range(LOOKS):
        gap.seen(5_000, 65_000, 5_020)
    assert gap.ahead_ms == -59_990
