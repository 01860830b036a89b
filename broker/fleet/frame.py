"""Bodies of commits: bytes of some partitions as they are stored, with the arrival of each batch.

A body explains itself: its directory says what each part is, so that the objects alone are enough
to restore from. A part has its own checksum and is read alone.

    magic, fleet id, node id, incarnation, number      head
    parts: count, (arrival ms, length) per batch, batches, CRC-32C
    directory: one entry a part; its length; CRC-32C of all before
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from broker.fleet.catalog.rows import CommitId, Incarnation, PartitionKey, Span
from protocol.checksum import crc32c

MAGIC = b"HOROWAL1"
_HEAD = struct.Struct(">8s16siqq")
_COUNT = struct.Struct(">I")
_BATCH = struct.Struct(">qI")
_SUM = struct.Struct(">I")
_ENTRY = struct.Struct(">16siiqqIIq")
_TAIL = struct.Struct(">II")
MAX_BATCHES = 1 << 20
"""Batches of one part."""


class CorruptFrame(Exception):  # noqa: N818 - what happened
    """The bytes are not what was committed."""


class StoredBatch(NamedTuple):
    """A record batch as it is in a log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    arrival_ms: int
    data: bytes


class PartitionBatches(NamedTuple):
    """Batches of one partition, one after the other, all of one epoch."""

    partition: PartitionKey
    epoch: int
    batches: Sequence[StoredBatch]


class Frame(NamedTuple):
    """A body, its checksum, and the spans of its parts."""

    body: bytes
    crc: int
    spans: tuple[Span, ...]


class ArrivedBatch(NamedTuple):
    """A batch as a part has it."""

    arrival_ms: int
    data: bytes


def make_frame(fleet_id: UUID, commit_id: CommitId, parts: Iterable[PartitionBatches]) -> Frame:
    """The body of a commit."""
    (node_id, incarnation), number = commit_id
    body = bytearray(_HEAD.pack(MAGIC, fleet_id.bytes, node_id, incarnation, number))
    spans = []
    for each in parts:
        part = _part(each.batches)
        spans.append(_span(each, len(body), len(part)))
        body += part
    directory = b"".join(map(_entry, spans))
    body += directory
    body += _COUNT.pack(len(directory))
    crc = crc32c(body)
    body += _SUM.pack(crc)
    return Frame(bytes(body), crc, tuple(spans))


def read_part(part: bytes | memoryview) -> list[ArrivedBatch]:
    """Batches of a part. CorruptFrame."""
    view = memoryview(part)
    if len(view) < _COUNT.size + _SUM.size:
        raise CorruptFrame(f"a part of {len(view)} bytes")
    if crc32c(view[: -_SUM.size]) != _SUM.unpack(view[-_SUM.size :])[0]:
        raise CorruptFrame("a part has another checksum than it was committed with")
    [count] = _COUNT.unpack_from(view)
    if count > MAX_BATCHES or _COUNT.size + count * _BATCH.size > len(view):
        raise CorruptFrame(f"a part of {count} batches in {len(view)} bytes")
    at = _COUNT.size + count * _BATCH.size
    found = []
    for arrival_ms, size in _BATCH.iter_unpack(view[_COUNT.size : at]):
        found.append(ArrivedBatch(arrival_ms, bytes(view[at : at + size])))
        at += size
    if at != len(view) - _SUM.size:
        raise CorruptFrame("a part ends within a batch")
    return found


def read_directory(body: bytes, fleet_id: UUID) -> tuple[CommitId, list[Span]]:
    """The commit that a body is of, and its spans. CorruptFrame."""
    if len(body) < _HEAD.size + _TAIL.size or body[: len(MAGIC)] != MAGIC:
        raise CorruptFrame("it is not the body of a commit")
    size, crc = _TAIL.unpack_from(body, len(body) - _TAIL.size)
    if crc32c(memoryview(body)[: -_SUM.size]) != crc:
        raise CorruptFrame("it has another checksum than it was committed with")
    _, owner, node_id, incarnation, number = _HEAD.unpack_from(body)
    if owner != fleet_id.bytes:
        raise CorruptFrame("it is another fleet's")
    begin = len(body) - _TAIL.size - size
    if size % _ENTRY.size or begin < _HEAD.size:
        raise CorruptFrame(f"a directory of {size} bytes")
    entries = _ENTRY.iter_unpack(memoryview(body)[begin : begin + size])
    spans = [
        Span(PartitionKey(UUID(bytes=topic), part), base, last, epoch, at, length, most)
        for topic, part, epoch, base, last, at, length, most in entries
    ]
    return CommitId(Incarnation(node_id, incarnation), number), spans


def _part(batches: Sequence[StoredBatch]) -> bytes:
    part = bytearray(_COUNT.pack(len(batches)))
    for each in batches:
        part += _BATCH.pack(each.arrival_ms, len(each.data))
    for each in batches:
        part += each.data
    return bytes(part + _SUM.pack(crc32c(part)))


def _span(part: PartitionBatches, position: int, size_bytes: int) -> Span:
    batches = part.batches
    return Span(
        part.partition,
        batches[0].base_offset,
        batches[-1].last_offset,
        part.epoch,
        position,
        size_bytes,
        max(each.max_timestamp for each in batches),
    )


def _entry(span: Span) -> bytes:
    (topic_id, number), base, last, epoch, position, size_bytes, most = span
    return _ENTRY.pack(topic_id.bytes, number, epoch, base, last, position, size_bytes, most)
