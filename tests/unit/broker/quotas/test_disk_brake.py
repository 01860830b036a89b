"""Producers are slowed to the rate of the moment, and never stopped."""

from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.quotas.disk_brake import LONGEST_REST_SECONDS, DiskBrake
from broker.quotas.enforcement import FETCH, PRODUCE, Enforcement, Throttled
from broker.quotas.table import PRODUCER_BYTE_RATE, USER, QuotaTable, entity_of
from broker.runtime.principals import Principal
from broker.runtime.request_context import Peer, RequestContext
from protocol.apis.fetch import FetchResponse
from protocol.apis.produce import ProduceResponse
from protocol.headers import RequestHeader

MB = 1_000_000
ALICE = Principal("User", "alice")


class BrakedBroker:
    """Requests that cost their size, and the clock of it all."""

    def __init__(self) -> None:
        self.now, self.rate = 100.0, 10.0 * MB
        self.muted: list[tuple[int, float]] = []
        self.throttled = Throttled()
        self.brake = DiskBrake(
            lambda: self.rate,
            monotonic=lambda: self.now,
            mute=self.mute,
            throttled=self.throttled,
        )

    def mute(self, number: int, seconds: float) -> None:
        self.muted.append((number, seconds))

    def send(self, size_bytes: int, *, api_key: int = PRODUCE, connection: int = 1) -> int:
        """Throttle time of the answer, in ms."""
        peer = Peer(connection, "10.0.0.9", 5000, "PLAINTEXT", "10.0.0.1", 9092, ALICE)
        header = RequestHeader(api_key, 9, 1, "c", 0)
        context = RequestContext(header, peer, cast("Any", None))
        self.brake.handled(context, size_bytes, 0.0)
        response = ProduceResponse(responses=[]) if api_key == PRODUCE else FetchResponse()
        self.brake.answering(context, response)
        return cast("int", response.throttle_time_ms)


def test_a_producer_rests_for_as_long_as_its_bytes_take_at_the_rate() -> None:
    broker = BrakedBroker()
    assert broker.send(MB) == 100
    assert broker.muted == [(1, 0.1)]
    broker.now += 0.1
    assert broker.send(2 * MB) == 200


@pytest.mark.parametrize("producers", [1, 3])
def test_all_producers_together_are_held_to_the_rate(producers: int) -> None:
    """Each sends its next request when it may; in 20 s, 200 MB come."""
    broker, came = BrakedBroker(), 0
    may_send = dict.fromkeys(range(producers), broker.now)
    ends = broker.now + 20
    while (next_one := min(may_send, key=lambda each: may_send[each])) is not None:
        broker.now = max(broker.now, may_send[next_one])
        if broker.now >= ends:
            break
        rest_ms = broker.send(MB, connection=next_one)
        may_send[next_one] = broker.now + rest_ms / 1000
        came += MB
    assert came == pytest.approx(200 * MB, rel=0.1)


def test_no_rest_is_longer_than_a_second_whatever_the_rate() -> None:
    broker = BrakedBroker()
    broker.rate = 0.0
    for _ in range(3):
        assert broker.send(MB) == LONGEST_REST_SECONDS * 1000
    broker.rate, broker.now = 10.0 * MB, broker.now + 1
    assert broker.send(MB) == 100, "what came at another rate is not owed at this one"


def test_nobody_rests_while_the_rate_has_no_bound() -> None:
    broker = BrakedBroker()
    broker.send(5 * MB)
    broker.rate = inf
    assert broker.send(100 * MB) == 0
    broker.rate = 10.0 * MB
    assert broker.send(MB) == 100


def test_readers_do_not_rest() -> None:
    broker = BrakedBroker()
    assert broker.send(100 * MB, api_key=FETCH) == 0
    assert broker.muted == []


def test_a_producer_that_wants_no_answer_rests_too() -> None:
    broker = BrakedBroker()
    context = SimpleNamespace(
        api_key=PRODUCE, connection_id=7, charge=(MB, 0.0), peer="10.0.0.9:5000"
    )
    broker.brake.answering(cast("Any", context), None)
    assert broker.muted == [(7, 0.1)]


def test_of_a_quota_and_the_brake_the_longer_rest_counts() -> None:
    broker = BrakedBroker()
    quotas = Enforcement(
        windows=1, window_ms=1000, monotonic=lambda: broker.now,
        burst_seconds=11,
        mute=broker.mute, throttled=broker.throttled,
    )  # fmt: skip
    quotas.use(QuotaTable({entity_of([(USER, "alice")]): {PRODUCER_BYTE_RATE: 0.5 * MB}}))
    broker.brake.quotas = quotas
    assert broker.send(MB) == 1000
    assert max(seconds for _, seconds in broker.muted) == 1.0
    broker.now += 60
    broker.rate = 0.8 * MB
    assert broker.send(MB // 2) == 625


def test_rests_are_counted() -> None:
    broker = BrakedBroker()
    for _ in range(2):
        broker.send(MB)
    assert broker.throttled.requests == {"disk_space": 2}
    assert broker.throttled.milliseconds == {"disk_space": 300}
