"""The records of `__transaction_state`: Kafka's schemas of keys and values, and their bytes.

A key is its version (int16, 0) and the transactional id; a value begins with its version. Version 1
is written, as Kafka 4 does; version 0 is read too.
"""

from struct import Struct
from typing import NamedTuple

from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, Int64, String

KEY_VERSION = 0
VALUE_VERSION = 1
NONE = -1

_VERSION = Struct(">h")


@message(flexible_from=None)
class TransactionLogKey:
    """Key of a transactional id's record."""

    transactional_id: str = field(String)


@message
class PartitionsSchema:
    """Partitions of one topic."""

    topic: str = field(String)
    partition_ids: list[int] = field(Array(Int32))


@message(flexible_from=1)
class TransactionLogValue:
    """The state of a transactional id; times in ms since 1970, -1 for none."""

    producer_id: int = field(Int64)
    previous_producer_id: int = field(Int64, since=1, tag=0, default=NONE)
    next_producer_id: int = field(Int64, since=1, tag=1, default=NONE)
    producer_epoch: int = field(Int16)
    transaction_timeout_ms: int = field(Int32)
    transaction_status: int = field(Int8)
    transaction_partitions: list[PartitionsSchema] | None = field(
        Array(PartitionsSchema), nullable=True
    )
    transaction_last_update_timestamp_ms: int = field(Int64)
    transaction_start_timestamp_ms: int = field(Int64)
    client_transaction_version: int = field(Int16, since=1, tag=2)


class TransactionRow(NamedTuple):
    """The state of one transactional id; `value` is None for one that was forgotten."""

    transactional_id: str
    value: TransactionLogValue | None


def transaction_key(transactional_id: str) -> bytes:
    """The key of a transactional id."""
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(KEY_VERSION) + encode_bytes(key, 0)


def transaction_value(value: TransactionLogValue) -> bytes:
    """The value of its state."""
    return _VERSION.pack(VALUE_VERSION) + encode_bytes(value, VALUE_VERSION)


def read_row(key: bytes | None, value: bytes | None) -> TransactionRow | None:
    """Parses a record; None for a kind that is not ours. DecodeError for a damaged one."""
    if key is None or len(key) < _VERSION.size:
        raise DecodeError("a record of transactions without a key")
    if _VERSION.unpack_from(key)[0] != KEY_VERSION:
        return None
    owner = decode(TransactionLogKey, 0, memoryview(key), _VERSION.size).transactional_id
    return TransactionRow(owner, None if value is None else _value_of(value))


def _value_of(data: bytes) -> TransactionLogValue:
    if len(data) < _VERSION.size:
        raise DecodeError("a record of transactions is shorter than its version")
    version = _VERSION.unpack_from(data)[0]
    if not 0 <= version <= VALUE_VERSION:
        raise DecodeError(f"version {version} of a record of transactions, known are 0 and 1")
    return decode(TransactionLogValue, version, memoryview(data), _VERSION.size)
