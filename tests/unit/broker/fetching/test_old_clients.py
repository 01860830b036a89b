"""Produce 0-2, Fetch 0-3 and ListOffsets 0: what clients of Kafka 0.8 to 0.10 are told."""

import asyncio
from typing import Any

import pytest

from broker.runtime.connection_limits import CloseConnection
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy import HEAD, plain_messages, read_messages
from protocol.records.old_formats.legacy_builder import Row, build_message, build_set, wrap
from protocol.records.record import Record, read_records
from tests.support.worlds.handler_world import World, batch, produce_request

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
VERSIONS = range(3)
with_codecs = pytest.mark.parametrize("codec", OLD_CODECS)
with_versions = pytest.mark.parametrize("version", VERSIONS)


def magic_of(version: int) -> int:
    """The format that clients of a Produce or Fetch version speak."""
    return int(version >= 2)


def rows(world: World, count: int = 3) -> list[Row]:
    now = world.clock.now_ms()
    return [(n, now - n, b"k%d" % n, b"v%d" % n) for n in range(count)]


async def produce(world: World, records: Any, version: int, **how: Any) -> Any:
    response = await world.call(produce_request(records, **how), version)
    return response.responses[0].partition_responses[0]


def fetch_request(offset: int = 0, partition_bytes: int = 1 << 20, **how: Any) -> FetchRequest:
    topics = how.pop("topics", ("t",))
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=partition_bytes)
    how = {"max_wait_ms": 0, "min_bytes": 1, **how}
    return FetchRequest(
        topics=[FetchTopic(topic=name, partitions=[wanted]) for name in topics], **how
    )


async def fetch(world: World, version: int, *args: int, **how: Any) -> Any:
    response = await world.call(fetch_request(*args, **how), version)
    return response.responses[0].partitions[0]


def read(records: memoryview) -> list[Row]:
    """Every message of an answer, wrapper after wrapper."""
    found: list[Row] = []
    position = 0
    while position < len(records):
        size = 12 + HEAD.unpack_from(records, position)[1]
        for m in read_messages(records[position : position + size]):
            key, value = (None if part is None else bytes(part) for part in (m.key, m.value))
            found.append((m.offset, m.timestamp, key, value))
        position += size
    return found


async def stored(world: World, topic: str = "t") -> list[Record]:
    """What the log holds, as a client of today reads it."""
    data = (await world.call(fetch_request(topics=(topic,)), 4)).responses[0].partitions[0].records
    batches = [data[at : at + header.size_bytes] for at, header in iter_headers(data)]
    return [record for each in batches for record in read_records(each)]


# -- produce


@with_versions
@with_codecs
async def test_an_old_set_is_stored_as_one_batch_with_its_codec(
    world: World, version: int, codec: Codec
) -> None:
    await world.make_topic()
    magic = magic_of(version)
    for base in (0, 3):
        answer = await produce(world, build_set(rows(world), magic, codec=codec), version)
        assert (answer.error_code, answer.base_offset) == (0, base)

    assert await stored(world) == [
        Record(base + offset, time if magic else -1, key, value)
        for base in (0, 3)
        for offset, time, key, value in rows(world)
    ]
    data = (await fetch(world, 4)).records
    assert [header.codec for _, header in iter_headers(data)] == [codec, codec]


@with_versions
@with_codecs
async def test_a_topic_that_stamps_gives_old_records_the_brokers_time(
    world: World, version: int, codec: Codec
) -> None:
    await world.make_topic(message_timestamp_type="LogAppendTime")
    now = world.clock.now_ms()

    answer = await produce(world, build_set(rows(world), magic_of(version), codec=codec), version)

    assert answer.log_append_time_ms == (now if version == 2 else -1)
    assert {record.timestamp for record in await stored(world)} == {now}


@with_codecs
async def test_the_topics_codec_is_used(world: World, codec: Codec) -> None:
    await world.make_topic(compression_type="lz4")
    await produce(world, build_set(rows(world), 1, codec=codec), 2)

    ((_, header),) = iter_headers((await fetch(world, 4)).records)
    assert header.codec is Codec.LZ4


@with_codecs
async def test_times_out_of_bounds_are_refused(world: World, codec: Codec) -> None:
    await world.make_topic(message_timestamp_after_max_ms="1000")
    late: list[Row] = [(0, world.clock.now_ms() + 1001, None, b"v")]

    answer = await produce(world, build_set(late, 1, codec=codec), 2)

    assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_TIMESTAMP, -1)
    assert await stored(world) == []


@pytest.mark.parametrize("topic_stamps", [False, True])
async def test_a_client_may_not_stamp(world: World, topic_stamps: bool) -> None:
    kind = "LogAppendTime" if topic_stamps else "CreateTime"
    await world.make_topic(message_timestamp_type=kind)
    now = world.clock.now_ms()

    answer = await produce(world, build_set(rows(world), 1, log_append_time=now), 2)

    assert answer.error_code == (ErrorCode.INVALID_TIMESTAMP if topic_stamps else 0)


async def test_compacted_topics_need_keys(world: World) -> None:
    await world.make_topic(cleanup_policy="compact")

    answer = await produce(world, build_set([(0, -1, None, b"v")], 0), 0)

    assert answer.error_code == ErrorCode.INVALID_RECORD


INNER = build_set([(n, 5, None, b"v") for n in range(3)], 1)
DAMAGED = build_set([(0, 5, None, b"v")], 1)[:-1] + b"x"
REFUSED = [
    ("crc", DAMAGED, ErrorCode.CORRUPT_MESSAGE),
    ("inner crc", wrap(DAMAGED, 1, Codec.GZIP, last_offset=0, timestamp=5),
     ErrorCode.CORRUPT_MESSAGE),
    ("too short", b"short", ErrorCode.CORRUPT_MESSAGE),
    ("cut off", INNER[:-3], ErrorCode.CORRUPT_MESSAGE),
    ("two wrappers", 2 * wrap(INNER, 1, Codec.GZIP, last_offset=2, timestamp=5),
     ErrorCode.INVALID_RECORD),
    ("nested", wrap(wrap(INNER, 1, Codec.GZIP, last_offset=2, timestamp=5), 1, Codec.GZIP,
                    last_offset=2, timestamp=5), ErrorCode.INVALID_RECORD),
    ("two formats", INNER + build_set([(0, 5, None, b"v")], 0), ErrorCode.INVALID_RECORD),
    ("no gzip", build_message(0, 1, 5, None, b"x", attributes=1), ErrorCode.INVALID_RECORD),
    ("zstd", build_message(0, 1, 5, None, b"x", attributes=4),
     ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("zstd in format 2", bytes(build_batch([(-1, None, b"v")], codec=Codec.ZSTD)),
     ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    ("large", build_set([(0, 5, None, bytes(600)), (1, 5, None, bytes(600))], 1),
     ErrorCode.MESSAGE_TOO_LARGE),
    ("large wrapper", wrap(INNER, 1, Codec.NONE, last_offset=2, timestamp=5) * 20,
     ErrorCode.MESSAGE_TOO_LARGE),
    ("bomb", build_set([(0, 5, None, bytes(100_000))], 1, codec=Codec.GZIP),
     ErrorCode.MESSAGE_TOO_LARGE),
]  # fmt: skip


@pytest.mark.parametrize(
    ("records", "code"), [row[1:] for row in REFUSED], ids=[r[0] for r in REFUSED]
)
@with_versions
async def test_a_refused_set_leaves_nothing(
    world: World, version: int, records: bytes, code: ErrorCode
) -> None:
    await world.make_topic(max_message_bytes="1000", max_decompressed_message_bytes="50000")

    answer = await produce(world, records, version)

    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert await stored(world) == []


async def test_a_refused_set_without_acks_closes_the_connection(world: World) -> None:
    await world.make_topic()
    with pytest.raises(CloseConnection):
        await world.call(produce_request(DAMAGED, acks=0), 1)


@with_versions
async def test_batches_of_today_are_taken_from_old_versions_too(world: World, version: int) -> None:
    await world.make_topic()
    assert (await produce(world, batch(b"v"), version)).base_offset == 0


@pytest.mark.parametrize("magic", [0, 1])
async def test_old_sets_are_not_taken_from_newer_versions(world: World, magic: int) -> None:
    await world.make_topic()
    answer = await produce(world, build_set(rows(world), magic), 3)
    assert answer.error_code == ErrorCode.INVALID_RECORD


async def test_sets_that_go_to_a_lane_and_sets_that_do_not_keep_their_order(world: World) -> None:
    await world.make_topic()
    world.lanes.held = True
    sent = [
        world.begin(produce_request(build_set(rows(world), 1, codec=codec)), 2)
        for codec in (Codec.GZIP, Codec.NONE, Codec.GZIP)
    ]
    while world.lanes.waiting:
        world.lanes.release()
        await asyncio.sleep(0)
    answers = [await world.settled(each) for each in sent]
    assert [each.responses[0].partition_responses[0].base_offset for each in answers] == [0, 3, 6]


# -- fetch


@pytest.mark.parametrize("version", range(4))
@with_codecs
async def test_batches_come_as_messages(world: World, version: int, codec: Codec) -> None:
    await world.make_topic()
    now, magic = world.clock.now_ms(), magic_of(version)
    for part in range(3):
        await world.produce(b"a%d" % part, b"b%d" % part, at=now, key=b"k", codec=codec)

    answer = await fetch(world, version)

    assert (answer.error_code, answer.high_watermark) == (0, 6)
    assert read(answer.records) == [
        (2 * part + n, now + n if magic else -1, b"k", b"%c%d" % (b"ab"[n], part))
        for part in range(3)
        for n in range(2)
    ]


@pytest.mark.parametrize("version", [2, 3])
@with_codecs
async def test_the_brokers_time_is_told_as_such(world: World, version: int, codec: Codec) -> None:
    await world.make_topic(message_timestamp_type="LogAppendTime")
    now = world.clock.now_ms()
    await world.produce(b"a", b"b", at=now - 5000, codec=codec)

    records = (await fetch(world, version)).records

    assert [m.timestamp for m in read_messages(records)] == [now, now]
    assert all(m.attributes & 8 for m in plain_messages(records, 1, wrappers=True))


async def test_records_before_the_wanted_one_stay_away(world: World) -> None:
    await world.make_topic()
    await world.produce(*[b"v%d" % n for n in range(10)])

    assert [row[0] for row in read((await fetch(world, 2, 7)).records)] == [7, 8, 9]


@pytest.mark.parametrize("version", range(4))
async def test_whole_messages_up_to_the_limit(world: World, version: int) -> None:
    await world.make_topic()
    await world.produce(*[b"v" * 100 for _ in range(10)])
    one = len(build_message(0, magic_of(version), 0, None, b"v" * 100))

    answer = await fetch(world, version, 0, 3 * one + 50)

    assert [row[0] for row in read(answer.records)] == [0, 1, 2]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_before_kip_74_a_message_that_does_not_fit_is_cut_off(
    world: World, codec: Codec
) -> None:
    await world.make_topic()
    await world.produce(bytes(range(256)) * 4, codec=codec)
    whole = (await fetch(world, 2)).records

    for size in (20, len(whole) - 1):
        assert (await fetch(world, 2, 0, size)).records == whole[:size]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
async def test_since_kip_74_it_comes_whole_but_only_once(world: World, codec: Codec) -> None:
    for name in "tu":
        await world.make_topic(name)
        await world.produce(bytes(range(256)) * 4, topic=name, codec=codec)

    response = await world.call(fetch_request(0, 20, topics=("t", "u")), 3)

    first, second = (topic.partitions[0] for topic in response.responses)
    assert [row[0] for row in read(first.records)] == [0]
    assert (second.records, second.error_code) == (b"", 0)


async def test_the_limit_of_the_whole_answer_counts_what_was_converted(world: World) -> None:
    for name in "tu":
        await world.make_topic(name)
        await world.produce(*[b"" for _ in range(100)], topic=name)

    response = await world.call(fetch_request(topics=("t", "u"), max_bytes=4000), 3)

    sizes = [len(topic.partitions[0].records) for topic in response.responses]
    assert sizes == [3400, 4000 // 34 * 34 - 3400]


@pytest.mark.parametrize("version", range(3))
async def test_answers_of_clients_that_state_no_limit_end_at_ours(version: int) -> None:
    """And nothing is cut off there, which would tell the client to ask for more."""
    world = World(fetch_max_bytes="4000")
    for name in "tuw":
        await world.make_topic(name)
        await world.produce(*[b"" for _ in range(100)], topic=name)
    one = len(build_message(0, magic_of(version), 0, None, b""))

    response = await world.call(fetch_request(topics=("t", "u", "w")), version)

    parts = [topic.partitions[0].records for topic in response.responses]
    assert sum(map(len, parts)) == 4000 // one * one
    assert len(read(parts[0])) == 100


@pytest.mark.parametrize("version", range(4))
async def test_zstd_has_no_old_form(world: World, version: int) -> None:
    await world.make_topic()
    await world.produce(b"plain")
    await world.produce(b"packed", codec=Codec.ZSTD)

    assert [row[3] for row in read((await fetch(world, version)).records)] == [b"plain"]
    answer = await fetch(world, version, 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("version", range(4))
async def test_a_topic_that_is_not_converted_says_so_where_there_are_records(
    world: World, version: int
) -> None:
    await world.make_topic(message_downconversion_enable="false")
    assert (await fetch(world, version)).error_code == 0
    await world.produce(b"v")

    answer = await fetch(world, version)

    assert (answer.error_code, bytes(answer.records)) == (ErrorCode.UNSUPPORTED_VERSION, b"")


async def test_conversion_changes_nothing_for_clients_that_need_none(world: World) -> None:
    await world.make_topic(message_downconversion_enable="false")
    await world.produce(b"v")

    assert (await fetch(world, 4)).error_code == 0


@pytest.mark.parametrize("version", range(4))
async def test_a_topic_of_zstd_says_so_at_once(world: World, version: int) -> None:
    await world.make_topic(compression_type="zstd")
    await world.produce(b"v")

    answer = await fetch(world, version)

    assert answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


async def test_a_damaged_batch_is_not_given_a_new_checksum(world: World) -> None:
    await world.make_topic()
    for value in (b"good", b"bad", b"good"):
        await world.produce(value)
    slot = world.partition().log.snapshot.segments[0].file()
    at = slot.read_at(0, 1000).index(b"bad")
    slot.write_at(at, b"BAD")

    assert [row[3] for row in read((await fetch(world, 2)).records)] == [b"good"]
    assert world.broker.probes.topics["t"].damaged_reads == 0
    assert (await fetch(world, 2, 1)).error_code == ErrorCode.CORRUPT_MESSAGE
    assert world.broker.probes.topics["t"].damaged_reads == 1


async def test_offsets_out_of_range(world: World) -> None:
    await world.make_topic()
    answer = await fetch(world, 1, 5)
    assert (answer.error_code, answer.records) == (ErrorCode.OFFSET_OUT_OF_RANGE, b"")


async def test_a_long_answer_is_made_in_steps(world: World) -> None:
    await world.make_topic()
    for _ in range(20):
        await world.produce(bytes(20_000))
    world.lanes.held = True
    answer = world.begin(fetch_request(), 2)
    steps = 0
    while not answer.settled:
        await asyncio.sleep(0)
        if world.lanes.waiting:
            world.lanes.release()
            steps += 1
    response = world.read(fetch_request(), 2, await world.settled(answer))
    assert len(read(response.responses[0].partitions[0].records)) == 20
    assert steps >= 20 * 20_000 // (64 * 1024)


async def test_an_old_client_waits_for_data_as_any_other(world: World) -> None:
    await world.make_topic()
    answer = world.begin(fetch_request(max_wait_ms=60_000), 1)
    await asyncio.sleep(0)
    assert len(world.broker.waiters) == 1

    await world.produce(b"v")

    response = world.read(fetch_request(), 1, await world.settled(answer))
    assert [row[3] for row in read(response.responses[0].partitions[0].records)] == [b"v"]


async def test_a_client_that_goes_away_waits_no_more(world: World) -> None:
    await world.make_topic()
    answer = world.begin(fetch_request(max_wait_ms=60_000), 1)
    await asyncio.sleep(0)

    answer.abandon()
    await asyncio.sleep(0)

    assert len(world.broker.waiters) == 0


# -- markers of transactions, which only logs that Kafka wrote have so far


async def add_marker(world: World) -> None:
    """A control batch, as a coordinator would write it: past the checks that clients meet."""
    partition = world.partition()
    appender = partition.log._appender
    rules, appender._batch_rules = appender._batch_rules, _NoRules(appender._batch_rules)
    try:
        partition.writer.append(
            memoryview(build_batch([(5, b"\0\0\0\1", b"\0" * 6)], control=True)), 1
        )
    finally:
        appender._batch_rules = rules


class _NoRules:
    """Lets a marker pass: checked as the data that it is not."""

    def __init__(self, rules: Any) -> None:
        self.rules = rules

    def check(self, records: memoryview, now_ms: int, work: Any = None) -> Any:
        plain = bytearray(records)
        plain[21:23] = b"\0\0"
        from protocol.records.batch import seal

        seal(plain, 0, len(plain))
        return self.rules.check(memoryview(plain), now_ms, work)._replace(records=records)

    def needs_lane(self, records: memoryview) -> bool:
        return False


@pytest.mark.parametrize("version", range(4))
async def test_markers_are_stepped_over(world: World, version: int) -> None:
    await world.make_topic()
    await world.produce(b"a")
    for _ in range(3):
        await add_marker(world)
    await world.produce(b"b")

    assert [row[0] for row in read((await fetch(world, version)).records)] == [0, 4]
    small = await fetch(world, version, 1, 100)
    assert [row[0] for row in read(small.records)] == [4]


async def test_markers_at_the_end_do_not_make_a_client_ask_in_circles(world: World) -> None:
    await world.make_topic()
    await add_marker(world)
    answer = world.begin(fetch_request(max_wait_ms=60_000), 2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert not answer.settled

    await world.produce(b"v")

    response = world.read(fetch_request(), 2, await world.settled(answer))
    assert response.responses[0].partitions[0].records == b""
    assert [row[3] for row in read((await fetch(world, 2)).records)] == [b"v"]


# -- ListOffsets 0


async def offsets(world: World, timestamp: int, count: int = 100) -> Any:
    query = ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=count)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[query])])
    return (await world.call(request, 0)).topics[0].partitions[0]


async def test_an_empty_log_has_its_start_only(world: World) -> None:
    await world.make_topic()
    for timestamp in (-1, -2):
        assert (await offsets(world, timestamp)).old_style_offsets == [0]


async def test_segments_are_listed_by_the_times_of_their_files(world: World) -> None:
    await world.make_topic(internal_segment_bytes="200")
    for _ in range(3):
        world.clock.advance(10)
        await world.produce(bytes(100))
    segments = world.partition().log.snapshot.segments
    assert [segment.base_offset for segment in segments] == [0, 1, 2]
    times = [1000, 2000, 3000]
    for segment, time in zip(segments, times, strict=True):
        world.fs.set_mtime(segment.path_of(".log"), time)

    async def listed(timestamp: int, count: int = 100) -> list[int]:
        answer = await offsets(world, timestamp, count)
        assert answer.error_code == 0
        return list(answer.old_style_offsets)

    assert await listed(-1) == [3, 2, 1, 0]
    assert await listed(-1, 1) == [3]
    assert await listed(-2) == [0]
    assert await listed(999) == []
    assert await listed(1000) == [0]
    assert await listed(2999) == [1, 0]
    assert await listed(2999, 1) == [1]
    assert await listed(world.clock.now_ms()) == [3, 2, 1, 0]
    assert await listed(-1, 0) == []
    assert await listed(-1, -1) == []


async def test_the_log_start_takes_the_place_of_what_was_removed(world: World) -> None:
    await world.make_topic()
    await world.produce(*[b"v"] * 5)
    world.partition().log.delete_records(3)
    assert (await offsets(world, -2)).old_style_offsets == [3]


async def test_consumers_see_nothing_above_the_high_watermark(world: World) -> None:
    await world.make_topic(horolog_durability="fsync")
    answer = world.begin(produce_request(batch(b"v"), acks=-1), 12)
    assert world.partition().log.snapshot.high_watermark == 0
    assert (await offsets(world, -1)).old_style_offsets == [0, 0]
    world.commit.sync()
    await world.settled(answer)
    assert (await offsets(world, -1)).old_style_offsets == [1, 0]


async def test_other_special_times_came_later(world: World) -> None:
    await world.make_topic()
    answer = await offsets(world, -3)
    assert (answer.error_code, answer.old_style_offsets) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_unknown_partitions(world: World) -> None:
    answer = await offsets(world, -1)
    assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
