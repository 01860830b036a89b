"""So many connections a second from one address, and a burst; others are not touched."""

from broker.server.arrival_rate import BURST_SECONDS, ArrivalRate

RATE = 4


def admitted(rate: ArrivalRate, address: str, at: float, tries: int) -> int:
    return sum(rate.admits(address, at, RATE) for _ in range(tries))


def test_a_burst_and_then_the_rate() -> None:
    rate = ArrivalRate()
    burst = int(RATE * BURST_SECONDS) + 1
    assert admitted(rate, "a", 100.0, 1000) == burst
    assert admitted(rate, "b", 100.0, 1) == 1
    assert admitted(rate, "a", 101.0, 1000) == RATE
    assert admitted(rate, "a", 100.5, 1000) == 0, "a clock that goes back gives nothing"
    assert admitted(rate, "a", 201.0, 1000) == burst


def test_no_limit_remembers_nobody() -> None:
    rate = ArrivalRate()
    assert all(rate.admits("a", 1.0, 0) for _ in range(1000))
    assert len(rate) == 0


def test_who_has_not_come_for_a_while_needs_no_memory() -> None:
    rate = ArrivalRate()
    for number in range(100):
        rate.admits(f"10.0.0.{number}", 1.0, RATE)
    rate.admits("late", 5.0, RATE)
    rate.forget(5.0)
    assert len(rate) == 1
