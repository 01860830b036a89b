"""Searches by time in a tier, of a real broker with a real store: every answer is the list's.

`scripts/bench --cells tier-look-ups` asks 100,000 of them.
"""

from collections.abc import Iterator

import pytest

from tests.bench.peers import Peer
from tests.bench.tier.bad_topic import CLOCK_HELD, TOPIC, make_bad_topic
from tests.bench.tier.look_ups import CLOCKS, LookUps, ask_all
from tests.bench.tier.nodes import TieredNode, tiered
from tests.support.tier.s3_server import is_seaweedfs_published
from tests.support.tier_times.known_times import (
    NOTHING,
    ArrivedBatch,
    FoundRange,
    FoundRecord,
    KnownTimes,
)
from tests.support.worlds.broker_process import start_broker

SIZE_BYTES, SEGMENT_BYTES = 8 << 20, 1 << 20
LOOK_UPS = 1500
COLD_REQUESTS, COLD_BYTES = 2, 2 << 20
"""Of a look-up into a segment that nobody has asked for: its side files, and a block of records."""

Scene = tuple[TieredNode, KnownTimes]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A broker, most of whose topic is only in the store."""
    if not is_seaweedfs_published():
        pytest.skip("the package registry has no SeaweedFS for this platform")
    peer = Peer("horolog", "", None, tmp_path_factory.mktemp("times"), {}, {}, start_broker)
    with tiered(peer, {}, *CLOCK_HELD) as node:
        yield node, make_bad_topic(node, SIZE_BYTES, SEGMENT_BYTES)


def test_each_answer_is_exact(scene: Scene) -> None:
    node, known = scene
    assert node.local_bases(TOPIC)[0] > len(known.by_clock["record"]) / 2
    with LookUps(node, known) as asks:
        ask_all(asks, LOOK_UPS, seed=1)
        assert asks.wrong == []
        assert asks.count > LOOK_UPS * 0.95


def test_a_first_look_up_takes_two_requests(scene: Scene) -> None:
    node, known = scene
    node.again()
    clock, bases = CLOCKS[0], node.stored_bases(TOPIC)
    first, second = (int(known.by_clock[clock][base + 5]) for base in bases[:2])
    before = node.asked_of_store()
    with LookUps(node, known) as asks:
        asks.by_clock(clock)
        asks.first(first)
        asks.first(second)
        assert asks.wrong == []
    bill = node.asked_of_store().since(before)
    assert 0 < bill.requests <= 2 * COLD_REQUESTS
    assert 0 < bill.size_bytes <= 2 * COLD_BYTES


def test_the_list_itself() -> None:
    batches = [
        ArrivedBatch((5, 900, -1), 1000, 5000),
        ArrivedBatch((1500, -5), 1400, 100),
        ArrivedBatch((7000, 30), 2100, 100),
        ArrivedBatch((40,), 2200, 70_000),
        ArrivedBatch((50,), 2200, 10),
        ArrivedBatch((60,), 2300, 10),
    ]
    known = KnownTimes(batches, [0, 9])
    assert known.by_clock["arrival"].tolist() == [1400] * 5 + [2200] * 3 + [2200, 2300]
    assert known.by_clock["earlier"].tolist() == [5, 900, 1400, 1400, -1, 2200, 30, 40, 50, 60]
    assert known.first("record", 901) == FoundRecord(3, 1500)
    assert known.first("record", 7001) == NOTHING
    assert known.first("arrival", 1401) == FoundRecord(5, 2200)
    assert known.largest() == FoundRecord(5, 7000)
    assert known.between("record", -9, 41) == FoundRange(3, 0, 7)
    assert known.between("record", 41, 50) == FoundRange(0, None, None)
