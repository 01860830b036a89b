"""The bytes of `__share_group_state`: those that Kafka 4.3.0's own record serde makes."""

from uuid import UUID

import pytest

from broker.share.state.key import ShareKey, read_owner
from broker.share.state.records import (
    ShareUpdate,
    StoredShare,
    read_row,
    snapshot_row,
    tombstone_row,
    update_row,
)
from broker.share.state.remembered import SharePartitionState
from broker.share.states import StateBatch
from protocol.errors import DecodeError

ID = UUID("c844c7bc-77ca-4603-9085-dbac9b2f8e7e")
KEY = ShareKey("g1", ID, 0)
FAR = 1 << 33
CREATED = 1_764_000_000_000
SNAPSHOT_KEY = "000000026731c844c7bc77ca46039085dbac9b2f8e7e00000000"
UPDATE_KEY = "000100026731c844c7bc77ca46039085dbac9b2f8e7e00000003"
FIRST = SharePartitionState(0, 2, 0, -1, -1, [], CREATED, CREATED + 1)
FULL = SharePartitionState(3, 7, 11, FAR, 8, [StateBatch(FAR, FAR + 7, 4, 5)], CREATED, CREATED + 1)
CHANGE = ShareUpdate(3, 11, 0, 4, [StateBatch(0, 5, 0, 1), StateBatch(6, 9, 2, 4)])
EMPTY = ShareUpdate(3, 11, -1, -1, [])


@pytest.mark.parametrize(
    ("state", "value"),
    [
        (
            FIRST,
            "0000000000000000000200000000ffffffffffffffff0000019ab697e8000000019ab697e8010100",
        ),
        (
            FULL,
            (
                "000000000003000000070000000b00000002000000000000019ab697e800"
                "0000019ab697e80102000000020000000000000002000000070400050001000400000008"
            ),
        ),
    ],
)
def test_snapshots_are_kafkas_bytes(state: SharePartitionState, value: str) -> None:
    row = snapshot_row(KEY, state)
    assert row == (bytes.fromhex(SNAPSHOT_KEY), bytes.fromhex(value))
    assert read_row(*row) == StoredShare(KEY, state)


@pytest.mark.parametrize(
    ("update", "value"),
    [
        (
            CHANGE,
            (
                "0000000000030000000b000000000000000003000000000000000000000000000000050000010000"
                "0000000000000600000000000000090200040001000400000004"
            ),
        ),
        (EMPTY, "0000000000030000000bffffffffffffffff0100"),
    ],
)
def test_updates_are_kafkas_bytes(update: ShareUpdate, value: str) -> None:
    key = ShareKey("g1", ID, 3)
    row = update_row(key, update)
    assert row == (bytes.fromhex(UPDATE_KEY), bytes.fromhex(value))
    assert read_row(*row) == StoredShare(key, update)


def test_a_forgotten_share_partition_is_a_snapshot_without_value() -> None:
    assert tombstone_row(KEY) == (bytes.fromhex(SNAPSHOT_KEY), None)
    assert read_row(bytes.fromhex(SNAPSHOT_KEY), None) == StoredShare(KEY, None)


def test_records_of_other_kinds_mean_nothing() -> None:
    assert read_row(b"\x00\x02" + bytes.fromhex(SNAPSHOT_KEY)[2:], b"\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0", b""),
        (b"\0\0\0\2g", b"\0\0"),
        (bytes.fromhex(SNAPSHOT_KEY), b"\0"),
        (bytes.fromhex(SNAPSHOT_KEY), b"\0\1\0\0"),
        (bytes.fromhex(SNAPSHOT_KEY), b"\0\0\0"),
        (bytes.fromhex(UPDATE_KEY), None),
        update_row(KEY, ShareUpdate(0, 0, 0, 0, [StateBatch(4, 3, 0, 1)])),
        update_row(KEY, ShareUpdate(0, 0, 0, 0, [StateBatch(-2, 3, 0, 1)])),
    ],
)
def test_damaged_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        read_row(key, value)


def test_a_share_partition_is_named_as_kafka_names_it() -> None:
    assert KEY.owner == "g1:yETHvHfKRgOQhdusmy-Ofg:0"
    assert read_owner(KEY.owner) == KEY


@pytest.mark.parametrize(
    "text",
    [
        "", "g1", "g1:yETHvHfKRgOQhdusmy-Ofg", "g1:yETHvHfKRgOQhdusmy-Ofg:0:1",
        " :yETHvHfKRgOQhdusmy-Ofg:0",
        "g1:yETHvHfKRgOQhdusmy-O:0", "g1:yETHvHfKRgOQhdusmy+O!!:0", "g1:yETHvHfKRgOQhdusmy-Ofg:x",
        "g1:yETHvHfKRgOQhdusmy-Ofg:-1", "g1:yETHvHfKRgOQhdusmy-Ofg:",
    ],
)  # fmt: skip
def test_other_texts_name_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_owner(text)
