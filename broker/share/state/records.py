"""Records of `__share_group_state` (KIP-932): Kafka 4.3's schemas.

A key begins with its kind (two bytes), a value with its version, which is 0. Kind 0, ShareSnapshot:
all that is remembered of a share partition; without a value it is forgotten. Kind 1, ShareUpdate:
what changed since.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple, TypeVar
from uuid import UUID

from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from broker.share.states import StateBatch
from broker.state.state_topic import Row
from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, Int64, String, Uuid

T = TypeVar("T")

SNAPSHOT, UPDATE = 0, 1
UNKNOWN = -1
SHORT = Struct(">h")
SNAPSHOT_BYTES = 96
"""Most that a snapshot takes without its ranges and the group's name; its key is 24 of that."""
RANGE_BYTES = 20


@message(flexible_from=None)
class StoredShareKey:
    """Key of both kinds."""

    group_id: str = field(String)
    topic_id: UUID = field(Uuid)
    partition: int = field(Int32)


@message
class StoredShareBatch:
    """State and delivery count of a range of offsets, both ends included."""

    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_state: int = field(Int8)
    delivery_count: int = field(Int16)


@message(flexible_from=0)
class ShareSnapshotValue:
    """All that is remembered of a share partition."""

    snapshot_epoch: int = field(Int32)
    state_epoch: int = field(Int32)
    leader_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    delivery_complete_count: int = field(Int32, tag=0, default=UNKNOWN)
    create_timestamp: int = field(Int64)
    write_timestamp: int = field(Int64)
    state_batches: list[StoredShareBatch] = field(Array(StoredShareBatch))


@message(flexible_from=0)
class ShareUpdateValue:
    """Changes of a share partition; a start offset of -1 leaves it as it is."""

    snapshot_epoch: int = field(Int32)
    leader_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    delivery_complete_count: int = field(Int32, tag=0, default=UNKNOWN)
    state_batches: list[StoredShareBatch] = field(Array(StoredShareBatch))


class ShareUpdate(NamedTuple):
    """Changes of a share partition, as they are stored."""

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    finished: int
    batches: list[StateBatch]


class StoredShare(NamedTuple):
    """One record: a snapshot, an update, or None where a share partition was forgotten."""

    key: ShareKey
    value: SharePartitionState | ShareUpdate | None


def snapshot_row(key: ShareKey, state: SharePartitionState) -> Row:
    """The record of all that is remembered."""
    value = ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.finished,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_stored(state.batches),
    )
    return _key(SNAPSHOT, key), SHORT.pack(0) + encode_bytes(value, 0)


def most_snapshot_bytes(key: ShareKey, state: SharePartitionState) -> int:
    """The most bytes that the key and the value of `snapshot_row` take, without making them."""
    return SNAPSHOT_BYTES + len(key.group.encode()) + RANGE_BYTES * len(state.batches)


def update_row(key: ShareKey, update: ShareUpdate) -> Row:
    """The record of a change."""
    value = ShareUpdateValue(
        snapshot_epoch=update.snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.finished,
        state_batches=_stored(update.batches),
    )
    return _key(UPDATE, key), SHORT.pack(0) + encode_bytes(value, 0)


def tombstone_row(key: ShareKey) -> Row:
    """The record after which nothing is remembered."""
    return _key(SNAPSHOT, key), None


def read_row(key: bytes, value: bytes | None) -> StoredShare | None:
    """Parses a record; None for one of a kind that is not known. DecodeError for a damaged one, or
    one of an unknown version.
    """
    if len(key) < SHORT.size:
        raise DecodeError("a key of a share partition is shorter than its kind")
    kind = SHORT.unpack_from(key)[0]
    if kind not in {SNAPSHOT, UPDATE}:
        return None
    named = decode(StoredShareKey, 0, memoryview(key), SHORT.size)
    share = ShareKey(named.group_id, named.topic_id, named.partition)
    if kind == UPDATE:
        if value is None:
            raise DecodeError("an update of a share partition has no value")
        return StoredShare(share, _update(_value(ShareUpdateValue, value)))
    return StoredShare(
        share, None if value is None else _snapshot(_value(ShareSnapshotValue, value))
    )


def _key(kind: int, key: ShareKey) -> bytes:
    stored = StoredShareKey(group_id=key.group, topic_id=key.topic_id, partition=key.partition)
    return SHORT.pack(kind) + encode_bytes(stored, 0)


def _stored(batches: Iterable[StateBatch]) -> list[StoredShareBatch]:
    return [
        StoredShareBatch(
            first_offset=each.first,
            last_offset=each.last,
            delivery_state=each.state,
            delivery_count=each.deliveries,
        )
        for each in batches
    ]


def _value(schema: type[T], value: bytes) -> T:
    if len(value) < SHORT.size:
        raise DecodeError("a record of a share partition is shorter than its version")
    if (version := SHORT.unpack_from(value)[0]) != 0:
        raise DecodeError(f"version {version} of a record of a share partition, known is 0")
    return decode(schema, 0, memoryview(value), SHORT.size)


def _snapshot(value: ShareSnapshotValue) -> SharePartitionState:
    return SharePartitionState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        finished=value.delivery_complete_count,
        batches=_read(value.state_batches),
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
    )


def _update(value: ShareUpdateValue) -> ShareUpdate:
    return ShareUpdate(
        value.snapshot_epoch,
        value.leader_epoch,
        value.start_offset,
        value.delivery_complete_count,
        _read(value.state_batches),
    )


def _read(batches: Iterable[StoredShareBatch]) -> list[StateBatch]:
    found = [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in batches
    ]
    for each in found:
        if not 0 <= each.first <= each.last:
            raise DecodeError(f"offsets {each.first}-{each.last} of a share partition")
    return found
