"""One rate that several threads share, and that may change while they wait."""

import threading
import time

import pytest

from broker.tier.pace import Pace


def waiting_in(pace: Pace, size_bytes: int) -> threading.Thread:
    thread = threading.Thread(target=pace, args=(size_bytes,), daemon=True)
    thread.start()
    return thread


def test_what_waits_goes_on_by_a_rate_that_was_raised() -> None:
    rate = [1000.0]
    pace = Pace(lambda: rate[0])
    pace(10_000_000)
    second = waiting_in(pace, 1)
    second.join(0.1)
    assert second.is_alive()
    rate[0] = 1e12
    second.join(10)
    assert not second.is_alive()
    assert pace.waited_seconds > 0


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_share_the_rate(threads: int) -> None:
    pace = Pace(lambda: 1e6)
    began = time.monotonic()
    working = [waiting_in(pace, 1) for _ in range(threads)]
    for each in working:
        each.join(10)
    pace(200_000)
    pace(1)
    assert time.monotonic() - began >= 0.2


def test_rest_is_not_saved_up() -> None:
    pace = Pace(lambda: 1e6)
    pace(1)
    time.sleep(0.3)
    began = time.monotonic()
    pace(100_000)
    pace(100_000)
    pace(1)
    assert time.monotonic() - began >= 0.2


def test_nobody_waits_once_the_broker_stops() -> None:
    pace = Pace(lambda: 1.0)
    pace(1 << 30)
    second = waiting_in(pace, 1)
    pace.stop()
    second.join(10)
    assert not second.is_alive()
