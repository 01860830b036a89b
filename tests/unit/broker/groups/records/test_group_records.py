"""The bytes of `__consumer_offsets`: those that Kafka 4.3.0 wrote, and older versions of them."""

import pytest

from broker.groups.classic.subscription import topics_of
from broker.groups.records.classic import (
    GroupRow,
    OffsetRow,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_row,
)
from broker.groups.records.consumer import (
    ClassicMember,
    ClassicProtocol,
    ConsumerRow,
    key_of,
    value_of,
)
from broker.state.state_topic import partition_of
from protocol.errors import DecodeError

# Taken from a Kafka 4.3.0 with one static member of a librdkafka client, and an old commit.
OFFSET_KEY = bytes.fromhex("0001000367727000017400000000")
OFFSET_VALUE = (
    b"\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x01\xa1\xfe\xce\x03W"
    b"\x01\x00\x10\x94w']\x1a\xeeM\r\xaa\xac\x84{^2q\x8f"
)
EXPIRING_KEY = bytes.fromhex("0001000673696d706c6500017400000001")
EXPIRING_VALUE = (
    b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x07\x00\x04meta\x00\x00\x01\xa1\xfe\xce\x04\\"
    b"\x00\x00\x01\xa1\xfe\xcf\x8a\xfc"
)
GROUP_KEY = b"\x00\x02\x00\x03grp"
MEMBER_ID = b"inst-2ed32c9d-74f6-4025-a70e-e2e0a527cfc9"
GROUP_VALUE = (
    b"\x00\x03\x00\x08consumer\x00\x00\x00\x01\x00\x05range\x00)" + MEMBER_ID
    + b"\x00\x00\x01\xa1\xfe\xce\x00%\x00\x00\x00\x01\x00)" + MEMBER_ID
    + b"\x00\x04inst\x00\x03cli\x00\n/127.0.0.1\x00\x04\x93\xe0\x00\x00\x17p\x00\x00\x00\x17"
    b"\x00\x03\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00"
    b"\x00\x00\x00\x19\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00"
    b"\x00\x00\x00\x01\x00\x00\x00\x00"
)  # fmt: skip
EMPTY_VALUE = (
    b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\xff\xff\xff\xff\x00\x00\x01\xa1\xfe\xce\x1a\xd8"
    b"\x00\x00\x00\x00"
)


@pytest.mark.parametrize(
    ("key", "value"), [(OFFSET_KEY, OFFSET_VALUE), (EXPIRING_KEY, EXPIRING_VALUE)]
)
def test_offsets_are_read_and_written_as_kafka_writes_them(key: bytes, value: bytes) -> None:
    row = read_row(key, value)
    assert isinstance(row, OffsetRow)
    assert row.value is not None
    assert offset_key(row.key.group, row.key.topic, row.key.partition) == key
    assert offset_value(row.value) == value


@pytest.mark.parametrize("value", [GROUP_VALUE, EMPTY_VALUE])
def test_groups_are_read_and_written_as_kafka_writes_them(value: bytes) -> None:
    row = read_row(GROUP_KEY, value)
    assert isinstance(row, GroupRow)
    assert row.value is not None
    assert group_key(row.group) == GROUP_KEY
    assert group_value(row.value) == value


def test_what_the_member_said_is_understood() -> None:
    row = read_row(GROUP_KEY, GROUP_VALUE)
    assert isinstance(row, GroupRow)
    assert row.value is not None
    member = row.value.members[0]
    assert (member.rebalance_timeout, member.session_timeout) == (300_000, 6000)
    assert topics_of(member.subscription) == {"t"}


@pytest.mark.parametrize(
    ("value", "offset", "committed", "expires"),
    [
        (bytes.fromhex("0000" "0000000000000007" "0001" "6d" "0000000000000009"), 7, 9, -1),
        (bytes.fromhex("0002" "0000000000000007" "0001" "6d" "0000000000000009"), 7, 9, -1),
        (
            bytes.fromhex("0003" "0000000000000007" "00000001" "0001" "6d" "0000000000000009"),
            7, 9, -1,
        ),
    ],
)  # fmt: skip
def test_offsets_of_older_versions_are_read(
    value: bytes, offset: int, committed: int, expires: int
) -> None:
    row = read_row(OFFSET_KEY, value)
    assert isinstance(row, OffsetRow)
    assert row.value is not None
    read = row.value
    assert (read.offset, read.commit_timestamp, read.expire_timestamp) == (
        offset, committed, expires,
    )  # fmt: skip
    assert read.metadata == "m"


def test_what_is_taken_back_and_what_is_not_ours() -> None:
    assert read_row(OFFSET_KEY, None) == OffsetRow(read_row(OFFSET_KEY, OFFSET_VALUE).key, None)  # type: ignore[union-attr]
    assert read_row(GROUP_KEY, None) == GroupRow("grp", None)
    assert read_row(b"\x00\x09\x00\x03grp", b"anything") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None), (b"", None), (b"\0", None), (b"\0\1\0\5", None), (GROUP_KEY, b"\0"),
        (GROUP_KEY, b"\0\x09"), (GROUP_KEY, GROUP_VALUE[:-1]), (OFFSET_KEY, b"\0\5" + b"\0" * 40),
    ],
)  # fmt: skip
def test_damaged_records_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        read_row(key, value)


@pytest.mark.parametrize(
    ("group", "count", "partition"),
    [
        # hashCode as Java has it: "" is 0, "Aa" equals "BB", "polygenelubricants" is -2^31
        ("", 50, 0), ("a", 50, 97 % 50), ("Aa", 1000, 112), ("BB", 1000, 112),
        ("polygenelubricants", 50, 0), ("grp", 3, 2), ("simple", 3, 2),
    ],
)  # fmt: skip
def test_a_group_lies_where_java_looks_for_it(group: str, count: int, partition: int) -> None:
    assert partition_of(group, count) == partition


@pytest.mark.parametrize(
    "metadata", [b"", b"\0\1", b"\xff\xff\0\0\0\0", b"\0\1\0\0\0\1\0\5t", b"\0\1\0\0\0\2\0\1t"]
)
def test_members_that_do_not_say_what_they_read(metadata: bytes) -> None:
    assert topics_of(metadata) is None


# Taken from a Kafka 4.3.0: a librdkafka member of the new protocol, with a topic of 4 partitions.
TOPIC_ID = b'\xcbx\xf0e"\x99M\xb2\xa0\x92\x02*\x0c\xea\xec\xd5'
FOUR = b"\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03"
CONSUMER_RECORDS = {
    b"\x00\x05\x00\x01g\x00\x16YmsGhQqhSg+3JmAyJwdM0g": (
        b"\x00\x00\x00\x00\x08rdkafka\x0b/127.0.0.1\x02\x02t\x01\x00\x04\x93\xe0\x00\x01\x00\x01\x00"
    ),
    b"\x00\x03\x00\x01g": b"\x00\x00\x00\x00\x00\x02\x01\x00\x08~g~\xa8\xf6X\xaa\x14",
    b"\x00\x07\x00\x01g\x00\x16YmsGhQqhSg+3JmAyJwdM0g": (
        b"\x00\x00\x02" + TOPIC_ID + FOUR + b"\x00\x00"
    ),
    b"\x00\x06\x00\x01g": b"\x00\x00\x00\x00\x00\x02\x01\x00\x08\x00\x00\x01\xa1\xffr\xa9\x8c",
    b"\x00\x08\x00\x01g\x00\x16YmsGhQqhSg+3JmAyJwdM0g": (
        b"\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x02" + TOPIC_ID + FOUR + b"\x01\x00\x11\x05"
        + b"\x00\x00\x00\x02" * 4 + b"\x01\x00"
    ),
}  # fmt: skip


@pytest.mark.parametrize("key", CONSUMER_RECORDS)
def test_consumer_groups_are_read_and_written_as_kafka_writes_them(key: bytes) -> None:
    row = read_row(key, CONSUMER_RECORDS[key])
    assert isinstance(row, ConsumerRow)
    assert key_of(row.kind, row.group, row.part) == key
    assert value_of(row.value) == CONSUMER_RECORDS[key]
    assert read_row(key, None) == row._replace(value=None)


def test_a_classic_member_of_a_consumer_group_is_remembered_as_one() -> None:
    classic = ClassicMember(
        session_timeout_ms=6000,
        supported_protocols=[ClassicProtocol(name="range", metadata=b"x" * 200)],
    )
    (key, value), *_ = CONSUMER_RECORDS.items()
    row = read_row(key, value)
    assert isinstance(row, ConsumerRow)
    said = row.value._replace(classic=classic)
    again = read_row(key, value_of(said))
    assert isinstance(again, ConsumerRow)
    assert again.value == said
    for end in range(len(value)):
        with pytest.raises(DecodeError):
            read_row(key, value[:end])
