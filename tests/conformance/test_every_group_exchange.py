"""A data directory with groups of all four kinds goes from a real Kafka 4.3 to us and back, twice:
each group goes on where the other broker left it.
"""

from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from protocol.apis.list_groups import ListGroupsRequest
from tests.conformance import test_share_offsets_differential as shares
from tests.conformance import test_streams_group_differential as streams
from tests.conformance.conftest import create_topic
from tests.conformance.test_share_exchange import ACCEPT, RELEASE, Given, read_some
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
COMMON, KAFKA = streams.COMMON | shares.COMMON, streams.KAFKA | shares.KAFKA
A_TIME = 2
"""Records that a consumer reads in one visit."""
KINDS = {"old": "classic", "new": "consumer", "g": "share", "goes": "streams"}


class Found(NamedTuple):
    """What the groups did in one visit."""

    old: list[int]
    new: list[int]
    queue: Given
    streams: list[object]
    kinds: dict[str, str]


def next_offsets(bootstrap: str, group: str, protocol: str) -> list[int]:
    """Offsets that a consumer of a group gets next, and commits; then it leaves."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["one"])
    found: list[int] = []

    def has_them() -> bool:
        for message in consumer.consume(A_TIME - len(found), 1):
            assert message.error() is None, message.error()
            offset = message.offset()
            assert offset is not None
            found.append(offset)
        return len(found) == A_TIME

    until(has_them, f"{group} gets nothing")
    consumer.commit(offsets=[TopicPartition("one", 0, found[-1] + 1)], asynchronous=False)
    consumer.close()
    return found


def visit(node: NodeProcess, held: dict[str, int], count: int, *types: int) -> Found:
    """All groups go on at a started broker: `types` is what the member of the queue says."""
    with ExitStack() as stack:
        running = stack.enter_context(node)
        queue = shares.OffsetsSide(running.bootstrap, is_new=not held)
        stack.callback(queue.wire.close)
        if not held:
            admin = AdminClient({"bootstrap.servers": running.bootstrap})
            for name in streams.SOURCES.keys() - queue.ids.keys():
                create_topic(admin, name, streams.SOURCES[name])
        side = streams.Side(running.bootstrap, is_new=False)
        stack.callback(side.wire.close)
        side.epochs |= held
        if not held:
            queue.alter("g", {"one": {0: 0}})
            side.beat("goes", "a", topology=streams.stateful("goes"))
            side.made("goes", "a")
            side.commit("goes", "a", side.epochs["goes/a"], "four")
        else:
            assert side._beat("goes", "a", None).error_code == 0
            side._beat("goes", "a", None)
        given = read_some(queue, count, *types)
        old = next_offsets(running.bootstrap, "old", "classic")
        new = next_offsets(running.bootstrap, "new", "consumer")
        side.said.clear()
        side.fetch("goes", "a", side.epochs["goes/a"])
        listed = side.wire.call(ListGroupsRequest(), 5).groups
        kinds = {each.group_id: each.group_type.lower() for each in listed}
        held |= side.epochs
    return Found(old, new, given, side.said, {name: kinds.get(name, "") for name in KINDS})


def test_every_group_goes_on_where_the_other_broker_left_it(tmp_path: Path) -> None:
    directory, held = tmp_path / "data", dict[str, int]()
    visits = [
        visit(start_kafka(directory, KAFKA), held, 4, ACCEPT, RELEASE, ACCEPT, ACCEPT),
        visit(start_broker(directory, COMMON), held, 1, RELEASE),
        visit(start_kafka(directory, KAFKA), held, 1, ACCEPT),
        visit(start_broker(directory, COMMON), held, 2, ACCEPT),
    ]
    for number, found in enumerate(visits):
        here = list(range(number * A_TIME, (number + 1) * A_TIME))
        assert (found.old, found.new) == (here, here)
        assert found.kinds == KINDS
        assert found.streams == [("fetch", 0, 1)]
    assert [each.queue for each in visits] == [[(0, 3, 1)], [(1, 1, 2)], [(1, 1, 3)], [(4, 5, 1)]]
