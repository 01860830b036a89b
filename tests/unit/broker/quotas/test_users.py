"""A limit of a user is that of his connections, whatever client id they give."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from broker.quotas.enforcement import FETCH, Enforcement, Throttled
from broker.quotas.table import CLIENT_ID, CONSUMER_BYTE_RATE, USER, QuotaTable, entity_of
from broker.runtime.principals import ANONYMOUS, Principal
from broker.runtime.request_context import Peer, RequestContext
from protocol.headers import RequestHeader

Ask = Callable[[Principal, str], int]
ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")


@pytest.fixture
def rest() -> Ask:
    """Milliseconds that a client has to rest for 10 MB read at once."""
    limits = {
        entity_of([(USER, "alice")]): {CONSUMER_BYTE_RATE: 1000.0},
        entity_of([(USER, "bob"), (CLIENT_ID, "slow")]): {CONSUMER_BYTE_RATE: 1000.0},
    }
    enforcement = Enforcement(
        windows=11,
        window_ms=1000,
        burst_seconds=11,
        monotonic=lambda: 5.0,
        mute=lambda number, seconds: None,
        throttled=Throttled(),
    )
    enforcement.use(QuotaTable(limits))

    def ask(principal: Principal, client_id: str) -> int:
        peer = Peer(1, "10.0.0.9", 5000, "SASL", "10.0.0.1", 9092, principal)
        context = RequestContext(RequestHeader(FETCH, 12, 1, client_id, 0), peer, cast("Any", None))
        return enforcement.fetched(context, 10_000_000)

    return ask


@pytest.mark.parametrize("client_id", ["a", "b", ""])
def test_of_a_user_by_any_client_id(rest: Ask, client_id: str) -> None:
    assert rest(ALICE, client_id) > 0


def test_of_a_user_by_one_client_id(rest: Ask) -> None:
    assert rest(BOB, "slow") > 0
    assert rest(BOB, "other") == 0


def test_of_nobody_else(rest: Ask) -> None:
    assert rest(ANONYMOUS, "slow") == 0
