"""A broker of Kafka 2.8.2, the last that stored all formats, and ours: the same sets in, the same
bytes on the disk, the same bytes out to consumers of every age.

`kafka_2_8_broker.txt` has what it stored behind offset 3, by the topic's format, timestamp type,
the format and codec that were sent and the topic's codec (`stored`), and what it gave to Fetch 1
and Fetch 3 (`fetched 0`, `fetched 1`; without the stub that fills up its answers). The old sets
are those of `kafka_3_9_sets.txt`. Packed bytes may differ between libraries; all around may not.
"""

from pathlib import Path
from typing import NamedTuple

import pytest

from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.batch import read_header
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy import LegacyMessage, plain_messages, read_messages
from protocol.records.record import read_records
from tests.support.worlds.handler_world import World, produce_request

FOLDER = Path(__file__).parent
PRODUCE, FETCH = (1, 2, 7), (1, 3)  # the version that a client of each format speaks


class Case(NamedTuple):
    """A topic of format 2 and what is sent to it."""

    kind: str
    magic: int
    codec: str
    target: str


def _lines(name: str) -> list[list[str]]:
    return [line.split() for line in (FOLDER / name).read_text().splitlines()]


OURS = [line for line in _lines("kafka_2_8_broker.txt") if line[0] != "sent"]
SENT = {
    (int(line[1]), line[2]): bytes.fromhex(line[-1])
    for name in ("kafka_2_8_broker.txt", "kafka_3_9_sets.txt")
    for line in _lines(name)
    if line[0] == "sent"
}
STORED = {
    Case(kind, int(magic), codec, target): bytes.fromhex(data)
    for what, *rest in OURS
    if what == "stored" and rest[0] == "2"
    for _, kind, magic, codec, target, data in [rest]
}
FETCHED = {
    (int(old), Case(kind, int(magic), codec, target)): bytes.fromhex(data)
    for what, old, *rest in OURS
    if what == "fetched"
    for _, kind, magic, codec, target, data in [rest]
}


@pytest.fixture
async def world() -> World:
    return World()


async def fetch(world: World, version: int) -> bytes:
    wanted = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[wanted])]
    )
    (answer,) = (await world.call(request, version)).responses[0].partitions
    assert answer.error_code == 0
    return bytes(answer.records)


async def lives(world: World, case: Case) -> None:
    """The topic as Kafka had it, its clock where Kafka's was, and the set sent twice."""
    header = read_header(STORED[case])
    if header.is_log_append_time:
        world.clock.step(header.max_timestamp - world.clock.now_ms())
    await world.make_topic(message_timestamp_type=case.kind, compression_type=case.target)
    for base in (0, 3):
        sent = bytearray(SENT[case.magic, case.codec])
        response = await world.call(produce_request(sent), PRODUCE[case.magic])
        answer = response.responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (0, base)
        stamp = header.max_timestamp if header.is_log_append_time and case.magic else -1
        assert answer.log_append_time_ms == stamp


@pytest.mark.parametrize("case", STORED)
async def test_what_is_stored(world: World, case: Case) -> None:
    await lives(world, case)
    stored, theirs = await fetch(world, 10), STORED[case]

    header, expected = read_header(stored), read_header(theirs)
    if expected.codec is Codec.NONE:
        assert stored == theirs
    assert header._replace(length=0, crc=0) == expected._replace(length=0, crc=0)
    assert read_records(memoryview(stored)) == read_records(memoryview(theirs))


@pytest.mark.parametrize(("magic", "case"), FETCHED)
async def test_what_an_old_consumer_gets(world: World, magic: int, case: Case) -> None:
    await lives(world, case)
    ours, theirs = await fetch(world, FETCH[magic]), FETCHED[magic, case]

    if case.codec == "none":
        assert ours == theirs
    assert outside(ours, magic) == outside(theirs, magic)
    assert inside(ours) == inside(theirs)


def outside(data: bytes, magic: int) -> list[tuple[object, ...]]:
    """Offset, attributes, time and key of the wrapper, or of each message when there is none."""
    return [message[:4] for message in plain_messages(data, magic, wrappers=True)]


def inside(data: bytes) -> list[LegacyMessage]:
    return [
        m._replace(key=m.key and bytes(m.key), value=m.value and bytes(m.value))
        for m in read_messages(memoryview(data))
    ]
