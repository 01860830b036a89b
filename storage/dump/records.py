"""The records of a format 2 batch as rows of a dump (semantics.md 7.2, 12)."""

from collections.abc import Iterable, Iterator

from protocol.records.batch import BatchHeader
from protocol.records.markers import ABORT, read_marker
from protocol.records.record import Header, Record, iter_records
from storage.dump.rows import Headers, Row, Value, stamp

CONTROL_TYPES = (
    "ABORT",
    "COMMIT",
    "LEADER_CHANGE",
    "SNAPSHOT_HEADER",
    "SNAPSHOT_FOOTER",
    "KRAFT_VERSION",
    "KRAFT_VOTERS",
)
_SEQUENCES = 1 << 31


def record_rows(batch: memoryview, header: BatchHeader, *, contents: bool) -> Iterator[Row]:
    """Each record; DecodeError before the first one when they cannot be read."""
    for record in iter_records(batch):
        fields: dict[str, Value] = {
            "offset": record.offset,
            "timestamp": stamp(header.attributes, header.magic, record.timestamp),
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": _sequence(header, record.offset),
            "headerKeys": [_readable(name) for name, _ in record.headers],
        }
        if header.is_control:
            fields.update(_control(record))
        elif contents:
            fields.update(key=record.key, payload=record.value, headers=_named(record.headers))
        yield Row("record", fields)


def _sequence(header: BatchHeader, offset: int) -> int:
    if header.base_sequence < 0:
        return header.base_sequence
    return (header.base_sequence + offset - header.base_offset) % _SEQUENCES


def _control(record: Record) -> dict[str, Value]:
    marker = read_marker(record)
    if marker is not None:
        name = CONTROL_TYPES[marker.kind]
        return {"endTxnMarker": name, "coordinatorEpoch": marker.coordinator_epoch}
    kind = int.from_bytes((record.key or b"")[2:4], signed=True)
    known = ABORT <= kind < len(CONTROL_TYPES)
    return {"controlType": f"{CONTROL_TYPES[kind] if known else 'UNKNOWN'}({kind})"}


def _named(headers: Iterable[Header]) -> Headers:
    return Headers(tuple((_readable(name), value) for name, value in headers))


def _readable(name: str) -> str:
    """A header's key without the surrogates that stand for bytes that are not UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
