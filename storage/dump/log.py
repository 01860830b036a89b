"""Dumps a `.log`: every batch, on request every record, in all three message formats.

Rules: memory is bounded whatever the file says (a window of it, and one batch with its records
unpacked); damage is named with its place, and the walk goes on at the next sound batch behind it.
Records of a batch whose CRC is wrong are not shown. Fields: semantics.md 7.1, 7.2, 12.
"""

import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from struct import Struct

from protocol.checksum import crc32c
from protocol.errors import DecodeError
from protocol.records.batch import (
    CODEC_MASK,
    CRC_STARTS,
    HEADER_BYTES,
    BatchHeader,
    read_header,
)
from protocol.records.old_formats import legacy
from storage.dump.messages import message_rows
from storage.dump.records import record_rows
from storage.dump.rows import Damage, Dumped, Row, Value, stamp
from storage.env import File
from storage.scan.log_scan import LogScan
from storage.scan.log_window import LogWindow

MAX_BATCH_BYTES = 128 * 1024 * 1024
"""A larger batch is shown by its header alone."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
_TIMESTAMP = Struct(">q")


@dataclass(frozen=True, slots=True)
class Detail:
    """Amount of detail of a log."""

    records: bool = False
    contents: bool = False
    """Keys, values and headers of the records, too."""


def dump_log(file: File, size: int, base_offset: int, detail: Detail) -> Iterator[Dumped]:
    """All batches in the first `size` bytes. DiskError when the disk fails."""
    yield Row("start", {"baseOffset": base_offset})
    window = LogWindow(file, size)
    position, next_offset = 0, base_offset
    while position < size:
        try:
            batch_size, last_offset = yield from _batch(window, position, detail)
        except DecodeError as error:
            found = LogScan(file, position, limit=size, next_offset=next_offset).good_batch_behind()
            yield from _unreadable(window, position, found, error)
            if found is None:
                return
            position = found
            continue
        position += batch_size
        next_offset = max(next_offset, last_offset + 1)


def _batch(
    window: LogWindow, position: int, detail: Detail
) -> Generator[Dumped, None, tuple[int, int]]:
    """The rows of the batch at `position`; its size and last offset. DecodeError if none is."""
    head = window.view(position, HEADER_BYTES)
    if len(head) >= legacy.HEAD.size and head[legacy.MAGIC_POSITION] in {0, 1}:
        return (yield from _message(window, position, detail))
    header = read_header(head)
    end = _end(window, position, header.size_bytes)
    is_valid = window.checksum(position + CRC_STARTS, end, crc32c) == header.crc
    yield Row("batch", batch_fields(header, position, is_valid=is_valid))
    if not is_valid:
        yield Damage(position, f"the batch at offset {header.base_offset} has a wrong CRC")
    elif detail.records:
        read = partial(record_rows, header=header, contents=detail.contents)
        yield from _lines_of(window, position, header.size_bytes, read)
    return header.size_bytes, header.last_offset


def _message(
    window: LogWindow, position: int, detail: Detail
) -> Generator[Dumped, None, tuple[int, int]]:
    """Likewise for a message of format 0 or 1, plain or a wrapper."""
    head = window.view(position, legacy.OFFSET_AND_SIZE_BYTES + legacy.OVERHEAD_BYTES[1])
    offset, length, crc, magic, attributes = legacy.HEAD.unpack_from(head)
    if length < legacy.OVERHEAD_BYTES[magic]:
        raise DecodeError(f"a message of {length} bytes has no room for its own fields")
    size = length + legacy.OFFSET_AND_SIZE_BYTES
    end = _end(window, position, size)
    ms = _TIMESTAMP.unpack_from(head, legacy.KEY_POSITION[0])[0] if magic else -1
    is_valid = window.checksum(position + legacy.CRC_STARTS, end, zlib.crc32) == crc
    yield Row(
        "batch",
        {
            "offset": offset,
            "position": position,
            "timestamp": stamp(attributes, magic, ms),
            "size": size,
            "magic": magic,
            "compresscodec": _codec(attributes),
            "crc": crc,
            "isvalid": is_valid,
        },
    )
    if not is_valid:
        yield Damage(position, f"the message at offset {offset} has a wrong CRC")
    elif detail.records:
        read = partial(message_rows, contents=detail.contents)
        yield from _lines_of(window, position, size, read)
    return size, offset


def batch_fields(header: BatchHeader, position: int, *, is_valid: bool) -> dict[str, Value]:
    """The header of a format 2 batch under Kafka's names."""
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.record_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.base_timestamp if header.has_delete_horizon else None,
        "position": position,
        "timestamp": stamp(header.attributes, header.magic, header.max_timestamp),
        "size": header.size_bytes,
        "magic": header.magic,
        "compresscodec": _codec(header.attributes),
        "crc": header.crc,
        "isvalid": is_valid,
    }


def _codec(attributes: int) -> str:
    number = attributes & CODEC_MASK
    return CODECS[number] if number < len(CODECS) else f"unknown({number})"


def _end(window: LogWindow, position: int, size: int) -> int:
    """End of the batch; DecodeError when the file ends before it."""
    if position + size > window.size:
        raise DecodeError(f"it is cut off: {window.size - position} of {size} bytes are there")
    return position + size


def _whole(window: LogWindow, position: int, size: int) -> memoryview:
    """The batch in memory; DecodeError when it is too large for that."""
    if size > MAX_BATCH_BYTES:
        raise DecodeError(f"{size} bytes in one batch are more than this reads at once")
    return window.view(position, size)


def _lines_of(
    window: LogWindow, position: int, size: int, read: Callable[[memoryview], Iterator[Row]]
) -> Iterator[Dumped]:
    """The records, and in place of a decoding error the damage that it means."""
    try:
        yield from read(_whole(window, position, size))
    except DecodeError as error:
        yield Damage(position, f"its records cannot be read: {error}")


def _unreadable(
    window: LogWindow, position: int, resumes_at: int | None, error: DecodeError
) -> Iterator[Dumped]:
    """Reports bytes that are no batch: their number, and whether sound ones follow."""
    if resumes_at is not None:
        lost = resumes_at - position
        yield Damage(position, f"{lost} bytes are no batch ({error.message}); sound ones follow")
        return
    invalid = window.size - position
    yield Row("tail", {"invalidBytes": invalid})
    if window.is_zeros(position):
        why = "zeros to the end: room that was reserved, or writes that a power cut lost"
    else:
        why = f"the last {invalid} bytes are no batch: {error.message}"
    yield Damage(position, why)
