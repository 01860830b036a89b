"""Limits on new connections of an address."""

from broker.quotas.arrivals import MAX_RATES, ArrivalQuota, spelled
from broker.quotas.enforcement import Throttled
from tests.unit.broker.quotas.test_table import Change, table_of

RATE = "connection_creation_rate"
WINDOWS = 11  # so a rate is measured over ten seconds at least


class Gate:
    """A quota with a clock."""

    def __init__(self, *changes: Change) -> None:
        self.now = 100.0
        self.throttled = Throttled()
        self.quota = ArrivalQuota(
            windows=WINDOWS,
            window_ms=1000,
            monotonic=lambda: self.now,
            throttled=self.throttled,
        )
        self.quota.use(table_of(*changes))

    def admitted(self, host: str, tries: int) -> int:
        return sum(not self.quota.rest_ms(host) for _ in range(tries))


def of(host: str | None, rate: float) -> Change:
    return [("ip", host)], {RATE: rate}


def test_a_burst_is_what_the_rate_gives_in_all_windows() -> None:
    gate = Gate(of("10.0.0.1", 2))
    assert gate.admitted("10.0.0.1", 50) == 20
    assert gate.quota.rest_ms("10.0.0.1") == 500
    assert gate.throttled.requests[RATE] == 31


def test_who_was_refused_has_not_come() -> None:
    gate = Gate(of("10.0.0.1", 2))
    gate.admitted("10.0.0.1", 500)
    gate.now += 12
    assert gate.admitted("10.0.0.1", 50) == 20


def test_an_address_has_its_own_limit_or_that_of_all() -> None:
    gate = Gate(of("10.0.0.1", 3), of(None, 1))
    assert gate.admitted("10.0.0.1", 50) == 30
    assert gate.admitted("10.0.0.2", 50) == 10
    assert gate.admitted("10.0.0.3", 50) == 10


def test_without_limits_everybody_comes_in() -> None:
    gate = Gate(of("10.0.0.1", 1))
    assert gate.admitted("10.0.0.2", 1000) == 1000
    gate.quota.use(table_of())
    assert not gate.quota.is_needed
    assert gate.admitted("10.0.0.1", 1000) == 1000


def test_all_spellings_of_an_address_are_one() -> None:
    gate = Gate(of("0:0:0:0:0:0:0:1", 1), of("::ffff:10.0.0.1", 1), of("fe80::1", 1))
    assert gate.admitted("::1", 50) == 10
    assert gate.admitted("10.0.0.1", 50) == 10
    assert gate.admitted("fe80::1%eth0", 50) == 10


def test_of_two_spellings_the_smaller_limit_holds() -> None:
    for rates in ((1, 5), (5, 1)):
        gate = Gate(of("::1", rates[0]), of("0:0:0:0:0:0:0:1", rates[1]))
        assert gate.admitted("::1", 50) == 10


def test_a_client_without_an_address_is_no_error() -> None:
    assert Gate(of("10.0.0.1", 1)).admitted("", 5) == 5


def test_there_is_an_end_to_addresses() -> None:
    gate = Gate(of(None, 1))
    assert gate.admitted("10.0.0.1", 50) == 10
    for number in range(MAX_RATES):
        gate.quota.rest_ms(f"fd00::{number:x}")
    assert gate.admitted("10.0.0.1", 50) == 10


def test_an_address_is_spelled_as_short_as_it_can_be() -> None:
    assert spelled("::FFFF:1.2.3.4") == "1.2.3.4"
    assert spelled("2001:0DB8::0") == "2001:db8::"
