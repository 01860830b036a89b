"""Contents of a stopped broker's partition directory, in a form that two equal brokers share.

Two things only are taken out of the bytes: the leader epoch of each batch (outside the CRC), and
the times that the broker stamped, each of which becomes its number (with the CRC that this calls
for). A missing index is an empty one: Kafka makes them on first use.
"""

from pathlib import Path
from struct import Struct
from typing import Any

from protocol.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchHeader,
    crc_matches,
    iter_headers,
    payload_of,
    seal,
)
from protocol.records.compression import inflate
from tests.support.histories.history_life import Life

_EPOCH_AT, _MAX_TIME_AT = 12, 35
_INT32, _INT64 = Struct(">i"), Struct(">q")
_OFFSET_ENTRY, _TIME_ENTRY = Struct(">ii"), Struct(">qi")
COMPARED = (".log", ".index", ".timeindex")


def files_of(life: Life, data_dir: Path) -> dict[str, Any]:
    """The comparable content of each file, by name."""
    directory = data_dir / f"{life.history.topic}-0"
    bases = sorted(path.stem for path in directory.glob("*.log"))
    contents: dict[str, Any] = {"segments": bases}
    for base in bases:
        for suffix in COMPARED:
            path = directory / f"{base}{suffix}"
            data = bytearray(path.read_bytes()) if path.exists() else bytearray()
            contents[path.name] = _comparable(life, suffix, data)
    return contents


def _comparable(life: Life, suffix: str, data: bytearray) -> Any:
    match suffix:
        case ".log":
            log = _without_stamps(life, data)
            if life.history.is_packed_anew:
                return [_unpacked(log, *each) for each in iter_headers(log)]
            return log
        case ".timeindex":
            return [(life.named(at), offset) for at, offset in _entries(_TIME_ENTRY, data)]
        case _:
            return list(_entries(_OFFSET_ENTRY, data))


def _entries(kind: Struct, data: bytearray) -> list[tuple[Any, ...]]:
    left_over = len(data) % kind.size
    assert not left_over, f"{left_over} bytes after the last entry"
    return list(kind.iter_unpack(data))


def _without_stamps(life: Life, data: bytearray) -> bytes:
    for position, header in iter_headers(bytes(data)):
        assert crc_matches(memoryview(bytes(data)), position, header)
        _INT32.pack_into(data, position + _EPOCH_AT, 0)
        if header.attributes & LOG_APPEND_TIME:
            number = life.stamps[header.max_timestamp]
            _INT64.pack_into(data, position + _MAX_TIME_AT, number)
            seal(data, position, header.size_bytes)
    return bytes(data)


def _unpacked(log: bytes, position: int, header: BatchHeader) -> tuple[Any, bytes]:
    """Header and records: of a batch that the broker packed, neither size nor CRC is comparable."""
    records = inflate(header.codec, payload_of(memoryview(log), position, header))
    assert header.size_bytes > HEADER_BYTES
    return header._replace(length=0, crc=0), bytes(records)
