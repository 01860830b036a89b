"""Waits of logs whose cleaning failed."""

import pytest

from broker.tasks.backoff import STORE, SetAside, set_aside
from storage.errors import CorruptLog, DiskError
from storage.tier.carrying import NotAsSent
from storage.tier.port import StoreAway

FULL = DiskError("/data/t-0", "write", "No space left on device", 28)
AWAY = StoreAway("topics/t", "get", "it cannot be reached")
SPOILT = NotAsSent("topics/t/0.log", "other bytes arrived than were sent")


def waits(error: Exception, count: int) -> list[float]:
    aside: SetAside | None = None
    found = []
    for _ in range(count):
        aside = set_aside(aside, error, 100.0)
        assert aside.until == 100.0 + aside.retry_seconds
        found.append(aside.retry_seconds)
    return found


@pytest.mark.parametrize("error", [AWAY, SPOILT])
def test_a_store_that_failed_once_is_asked_soon(error: Exception) -> None:
    assert waits(error, 7) == [2, 4, 8, 16, 32, 60, 60]


def test_other_bytes_than_were_sent_are_no_damage_of_the_log() -> None:
    assert set_aside(None, SPOILT, 0.0).kind == STORE


@pytest.mark.parametrize("error", [FULL, CorruptLog("/data/t-0/0.log", "crc")])
def test_other_waits_grow_to_an_hour(error: Exception) -> None:
    assert waits(error, 8) == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize("error", [FULL, AWAY])
def test_a_log_that_always_fails_is_waited_for_as_long_as_the_limit(error: Exception) -> None:
    """A store that is away for a day is asked more than a thousand times."""
    aside = set_aside(None, error, 0.0)._replace(failures=100_000)
    assert set_aside(aside, error, 0.0).retry_seconds in {60.0, 3600.0}
