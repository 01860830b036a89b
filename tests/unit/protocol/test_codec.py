"""Limits and exact bytes of the codec, through its generated and its interpreted form."""

import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from protocol.apis.fetch import FetchRequest, FetchResponse
from protocol.apis.list_offsets import ListOffsetsRequest
from protocol.apis.metadata import MetadataRequest
from protocol.apis.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from protocol.codec import decode, encode, encode_bytes, interpret, reader, writer
from protocol.errors import DecodeError
from protocol.text import MAX_STRING_BYTES
from protocol.wire import FREE_OBJECTS, MAX_OBJECTS, MAX_TAGS, TAG_COST, uvarint

Read = Callable[[type[Any], int, memoryview], Any]
both = pytest.mark.parametrize("read", [decode, interpret])

MIB = 2**20


def refused(read: Read, cls: type[Any], version: int, wire: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as refusal:
        read(cls, version, memoryview(wire))
    return refusal.value


def one_partition(records: Any) -> ProduceRequest:
    data = PartitionProduceData(index=3, records=records)
    return ProduceRequest(
        acks=-1, timeout_ms=1500, topic_data=[TopicProduceData(name="t", partition_data=[data])]
    )


def test_bytes_of_an_old_produce_request() -> None:
    assert encode_bytes(one_partition(b"RECORDS"), 3) == (
        b"\xff\xff" b"\xff\xff" b"\0\0\x05\xdc"
        b"\0\0\0\1" b"\0\1t" b"\0\0\0\1" b"\0\0\0\3" b"\0\0\0\7RECORDS"
    )  # fmt: skip


def test_bytes_of_a_flexible_produce_request() -> None:
    assert encode_bytes(one_partition(b"RECORDS"), 9) == (
        b"\0" b"\xff\xff" b"\0\0\x05\xdc" b"\2" b"\2t" b"\2" b"\0\0\0\3" b"\x08RECORDS" b"\0\0\0"
    )  # fmt: skip


@pytest.mark.parametrize("version", [3, 9])
def test_records_are_a_view_of_the_frame(version: int) -> None:
    frame = bytearray(encode_bytes(one_partition(b"RECORDS"), version))
    records = (
        decode(ProduceRequest, version, memoryview(frame)).topic_data[0].partition_data[0].records
    )
    records[0] = ord("W")
    assert b"WECORDS" in frame


def test_a_message_may_start_within_the_data() -> None:
    wire = encode_bytes(one_partition(b"RECORDS"), 9)
    assert decode(ProduceRequest, 9, memoryview(b"header" + wire), 6) == one_partition(b"RECORDS")


class Opaque:
    """A payload that is sent by other means: only its length is known here."""

    def __len__(self) -> int:
        return 300


def test_a_payload_passes_through_untouched() -> None:
    payload = Opaque()
    head, body, tail = encode(one_partition(payload), 9)
    assert body is payload
    assert head.endswith(uvarint(301))
    assert tail == b"\0\0\0"


@pytest.mark.parametrize("empty", [None, b""])
def test_without_a_payload_there_is_one_part(empty: bytes | None) -> None:
    assert len(encode(one_partition(empty), 9)) == 1


def test_functions_are_made_once() -> None:
    assert reader(ProduceRequest, 9) is reader(ProduceRequest, 9)
    assert writer(ProduceRequest, 9) is writer(ProduceRequest, 9)


def test_a_null_that_cannot_be_written_is_a_bug_not_a_message() -> None:
    broken: Any = TopicProduceData(name=None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        encode(ProduceRequest(topic_data=[broken]), 9)


@both
@pytest.mark.parametrize(
    ("version", "wire"),
    [
        (8, b"\xff\xff\0\0\0\0\0\0\xff\xff\xff\xff"),  # topics: a count of -1
        (9, b"\0\0\0\0\0\0\0\0\0"),
        (8, b"\xff\xff\0\0\0\0\0\0\0\0\0\1\xff\xff\0\0\0\0"),  # the name: a length of -1
        (9, b"\0\0\0\0\0\0\0\2\0\1\0\0"),
    ],
)
def test_null_where_it_is_not_permitted(read: Read, version: int, wire: bytes) -> None:
    refused(read, ProduceRequest, version, wire)


@both
def test_a_negative_length_other_than_null(read: Read) -> None:
    refused(read, ProduceRequest, 8, b"\xff\xfe\0\0\0\0\0\0\0\0\0\0")


@both
@pytest.mark.parametrize(
    ("name", "text"),
    [(b"\xff\xfe", "\ufffd\ufffd"), (b"a\xc3", "a\ufffd"), (b"\xfcber uns", "\ufffdber uns")],
)
def test_text_in_another_encoding_is_read_as_kafka_reads_it(
    read: Read, name: bytes, text: str
) -> None:
    wire = b"\0\0\0\1\0" + bytes((len(name),)) + name
    [topic] = read(MetadataRequest, 0, memoryview(wire)).topics
    assert topic.name == text


@both
def test_text_that_could_not_be_written_back_is_refused(read: Read) -> None:
    size = MAX_STRING_BYTES // 3

    def wire(name: bytes) -> bytes:
        return b"\0\0\0\1" + struct.pack(">h", len(name)) + name

    [topic] = read(MetadataRequest, 0, memoryview(wire(size * b"\xff"))).topics
    assert len(encode_bytes(MetadataRequest(topics=[topic]), 0)) <= 6 + MAX_STRING_BYTES
    refused(read, MetadataRequest, 0, wire((size + 1) * b"\xff"))
    [topic] = read(MetadataRequest, 0, memoryview(wire(MAX_STRING_BYTES * b"x"))).topics
    assert len(topic.name) == MAX_STRING_BYTES


@both
@pytest.mark.parametrize("flag", [0, 2, 0x80])
def test_a_struct_is_there_or_null(read: Read, flag: int) -> None:
    head = b"\1\0\0\x07\xd0"
    request = DescribeTopicPartitionsRequest(cursor=Cursor(topic_name="t", partition_index=1))
    assert read(DescribeTopicPartitionsRequest, 0, memoryview(encode_bytes(request, 0))) == request
    refused(read, DescribeTopicPartitionsRequest, 0, head + bytes((flag,)) + b"\2t\0\0\0\1\0\0")


@both
def test_a_tagged_field_has_exactly_its_size(read: Read) -> None:
    plain = encode_bytes(FetchRequest(), 12)
    assert plain.endswith(b"\0")
    tagged = plain[:-1] + b"\1" + b"\0\3\3ab"
    assert read(FetchRequest, 12, memoryview(tagged)).cluster_id == "ab"
    refused(read, FetchRequest, 12, plain[:-1] + b"\1" + b"\0\2\3ab")
    refused(read, FetchRequest, 12, plain[:-1] + b"\1" + b"\0\4\3ab?")


@both
def test_unknown_tags_between_known_ones_change_nothing(read: Read) -> None:
    tagged = encode_bytes(FetchRequest(), 12)[:-1] + b"\3" + b"\x7f\1?" + b"\0\3\3ab" + b"\x7e\0"
    assert read(FetchRequest, 12, memoryview(tagged)) == FetchRequest(cluster_id="ab")


@both
@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("cls", [ProduceRequest, ProduceResponse, FetchResponse, MetadataRequest])
def test_a_claimed_count_costs_nothing(read: Read, cls: type[Any], version: int) -> None:
    """The largest counts there are, and frames of a few bytes: refused before anything is made."""
    decode_once = encode_bytes(cls(), version)
    for position in range(len(decode_once)):
        for huge in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07"):
            wire = decode_once[:position] + huge + decode_once[position:]
            tracemalloc.start()
            with suppress(DecodeError):
                read(cls, version, memoryview(wire))
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert peak < MIB


@both
@pytest.mark.parametrize("count", [2, 9_000])
def test_a_count_is_held_against_the_bytes_left_before_anything_is_read(
    read: Read, count: int
) -> None:
    wire = count.to_bytes(4, "big") + b"\0\1"
    assert f"topics: {count} elements claimed" in str(refused(read, MetadataRequest, 0, wire))


def test_a_slice_past_the_end_names_its_field() -> None:
    wire = encode_bytes(one_partition(b"RECORDS"), 9)
    assert "records: truncated" in str(refused(decode, ProduceRequest, 9, wire[:-5]))
    assert "transactional_id: truncated" in str(refused(decode, ProduceRequest, 9, b"\x09abc"))


def topics(count: int, extra: int = 0) -> bytes:
    """A Metadata request of version 1 for `count` topics with names of `extra` letters."""
    return count.to_bytes(4, "big") + (extra.to_bytes(2, "big") + b"x" * extra) * count


@both
def test_tiny_elements_meet_the_object_budget(read: Read) -> None:
    """Two bytes on the wire are two objects: 20,000 are free, more need bytes to back them."""
    within = FREE_OBJECTS // 2
    assert len(read(MetadataRequest, 1, memoryview(topics(within))).topics) == within
    error = refused(read, MetadataRequest, 1, topics(2 * within))
    assert "too many objects" in str(error) or "more objects" in str(error)


def test_names_of_usual_length_back_themselves() -> None:
    assert len(decode(MetadataRequest, 1, memoryview(topics(100_000, 12))).topics) == 100_000


def test_no_frame_makes_more_objects_than_the_limit() -> None:
    count = MAX_OBJECTS // 2 + 1
    assert "too many objects" in str(refused(decode, MetadataRequest, 1, topics(count, 12)))


def test_nested_arrays_share_one_budget() -> None:
    one = b"\0\0" + b"\0\0\0\0"  # a topic without a name and without partitions
    many = 30_000
    wire = b"\xff\xff\xff\xff\0" + many.to_bytes(4, "big") + one * many
    assert "too many objects" in str(refused(decode, ListOffsetsRequest, 2, wire))


@both
def test_tags_have_a_cap_in_a_struct_and_in_all(read: Read) -> None:
    bare = encode_bytes(ApiVersionsRequest(client_software_name="n"), 3)[:-1]
    most = uvarint(MAX_TAGS) + b"\x20\0" * MAX_TAGS
    assert read(ApiVersionsRequest, 3, memoryview(bare + most)).client_software_name == "n"
    refused(read, ApiVersionsRequest, 3, bare + uvarint(MAX_TAGS + 1) + b"\x20\0" * (MAX_TAGS + 1))
    structs = FREE_OBJECTS // TAG_COST // MAX_TAGS * 2
    topic = b"\1" + b"\1" + most  # no name, no partitions, tags
    wire = b"\0\0\0\0\0" + uvarint(structs + 1) + topic * structs + b"\0"
    refused(read, ListOffsetsRequest, 6, wire)


def test_a_mebibyte_of_two_byte_tags_makes_no_objects() -> None:
    wire = b"\2n\1" + uvarint(MIB // 2) + b"\x20\0" * (MIB // 2)
    reader(ApiVersionsRequest, 3)
    frame = memoryview(wire)
    tracemalloc.start()
    refused(decode, ApiVersionsRequest, 3, wire)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(frame) // 8


def test_a_value_that_does_not_fit_is_a_bug() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode(ProduceRequest(transactional_id="\ud800"), 9)
    with pytest.raises(struct.error):
        encode(ProduceRequest(acks=70_000), 9)


def test_a_request_may_have_bytes_to_spare() -> None:
    all_topics_of_librdkafka = bytes.fromhex("00000000010000")
    read = reader(MetadataRequest, 13, exact=False)
    assert read(all_topics_of_librdkafka, 0) == MetadataRequest(
        topics=None, allow_auto_topic_creation=False
    )
    refused(decode, MetadataRequest, 13, all_topics_of_librdkafka)
    with pytest.raises(DecodeError):
        read(all_topics_of_librdkafka[:3], 0)
