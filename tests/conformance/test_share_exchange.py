"""A data directory with a share group goes from a real Kafka 4.3 to us and back: each goes on where
the other one was.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from protocol.apis import share_acknowledge, share_fetch
from tests.conformance.test_consumer_group_differential import until
from tests.conformance.test_share_offsets_differential import COMMON, KAFKA, OffsetsSide
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
ACCEPT, RELEASE = 1, 2
Given = list[tuple[int, int, int]]


def read_some(side: OffsetsSide, count: int, *types: int) -> Given:
    """What a member of the group is given next, with how often; it says `types` of the offsets."""
    member = f"reader-{count}-{len(types)}"
    side.beat("g", member, 0, "one")
    session = _Session(side, member)
    given: list[Given] = []

    def has_some() -> bool:
        given.append(session.fetch(count))
        return given[-1] != []

    until(has_some)
    [(first, last, _), *_] = given[-1]
    assert session.acknowledge(first, last, *types) == 0
    session.close()
    side.beat("g", member, -1)
    return given[-1]


class _Session:
    def __init__(self, side: OffsetsSide, member: str) -> None:
        self._side, self._member, self._epoch = side, member, 0

    def fetch(self, count: int) -> Given:
        of = share_fetch
        partition = of.ShareFetchPartition(partition_index=0, acknowledgement_batches=[])
        topic = of.ShareFetchTopic(topic_id=self._side.ids["one"], partitions=[partition])
        request = of.ShareFetchRequest(
            group_id="g", member_id=self._member, share_session_epoch=self._epoch,
            max_wait_ms=300, min_bytes=1, max_bytes=1 << 20, max_records=count, batch_size=count,
            share_acquire_mode=of.RECORD_LIMIT, topics=[topic], forgotten_topics_data=[],
        )  # fmt: skip
        answer = self._side.wire.call(request, 2)
        assert answer.error_code == 0, answer
        self._epoch += 1
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for part in topic.partitions
            for each in part.acquired_records
        ]

    def acknowledge(self, first: int, last: int, *types: int) -> int:
        of = share_acknowledge
        batch = of.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=list(types)
        )
        answer = self._ask([batch], self._epoch)
        self._epoch += 1
        return int(answer.responses[0].partitions[0].error_code)

    def close(self) -> None:
        self._ask([], -1)

    def _ask(self, batches: list[Any], epoch: int) -> Any:
        of = share_acknowledge
        partition = of.ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = of.ShareAcknowledgeTopic(topic_id=self._side.ids["one"], partitions=[partition])
        request = of.ShareAcknowledgeRequest(
            group_id="g", member_id=self._member, share_session_epoch=epoch, topics=[topic]
        )
        return self._side.wire.call(request, 2)


def visit(
    node: NodeProcess, work: Callable[[OffsetsSide], Given], *, is_new: bool = False
) -> tuple[Given, Any]:
    """What the work gives on a running broker, and what is said of the group's offsets after it."""
    with node as running:
        side = OffsetsSide(running.bootstrap, is_new=is_new)
        given = work(side)
        described = side._describe("g", {"one": [0]})
        side.wire.close()
    return given, described


def test_each_goes_on_where_the_other_was(tmp_path: Path) -> None:
    directory = tmp_path / "data"

    def begin(side: OffsetsSide) -> Given:
        side.alter("g", {"one": {0: 0}})
        return read_some(side, 4, ACCEPT, RELEASE, ACCEPT, ACCEPT)

    given, described = visit(start_kafka(directory, KAFKA), begin, is_new=True)
    assert given == [(0, 3, 1)]
    assert described == (0, [("one", "one", 0, 0, 7, 0)])
    given, after_us = visit(
        start_broker(directory, COMMON), lambda side: read_some(side, 1, RELEASE)
    )
    assert given == [(1, 1, 2)], "Kafka gave it back once"
    assert after_us == (0, [("one", "one", 0, 1, 7, 0)]), "the start of before the last change"
    given, described = visit(start_kafka(directory, KAFKA), lambda side: read_some(side, 1, ACCEPT))
    assert given == [(1, 1, 3)], "and we did"
    assert described == (0, [("one", "one", 0, 1, 6, 0)])
    given, described = visit(
        start_broker(directory, COMMON), lambda side: read_some(side, 2, ACCEPT)
    )
    assert given == [(4, 5, 1)]
    assert described == (0, [("one", "one", 0, 4, 4, 0)])
