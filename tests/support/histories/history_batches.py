"""The batches of histories: the bytes a client would send, sound or with one fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from protocol.records.batch import LENGTH_ENDS, LOG_APPEND_TIME, seal
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec

_INT16, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_LENGTH_AT, _ATTRIBUTES_AT, _LAST_DELTA_AT, _BASE_TIME_AT = 8, 21, 23, 27
_MAX_TIME_AT, _COUNT_AT = 35, 57
_SHIFT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Write:
    """One batch for Produce. `producer` is id, epoch and first sequence."""

    times: tuple[int, ...]
    codec: Codec = Codec.NONE
    value_bytes: int = 10
    producer: tuple[int, int, int] | None = None
    fault: str = ""
    keyless: bool = False

    def records(self) -> bytes:
        """Bytes for the wire; the same on every call."""
        rows = [
            (at, self._key(index), bytes([65 + index % 26]) * self.value_bytes)
            for index, at in enumerate(_within_reach(self.times))
        ]
        batch = build_batch(
            rows,
            codec=self.codec,
            base_offset=7 if self.fault == "base offset" else 0,
            control=self.fault == "control",
            **self._identity(),  # type: ignore[arg-type]
        )
        return bytes(_with_fault(batch, self.fault))

    def effective_times(self) -> tuple[int, ...]:
        """The times that a reader of the bytes computes."""
        times = _within_reach(self.times)
        if self.fault == "other base time":
            return tuple(at - _SHIFT_MS for at in times)
        return tuple(times)

    def _key(self, index: int) -> bytes | None:
        return None if self.keyless and index % 2 else b"k%d" % index

    def _identity(self) -> dict[str, int]:
        if self.producer is None:
            return {}
        producer_id, epoch, sequence = self.producer
        if self.fault == "no sequence":
            sequence = -1
        return {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence}


def misnumbered(rows: Sequence[NewRecord], deltas: Sequence[int], codec: Codec) -> bytearray:
    """A batch whose header is sound and whose records claim other offsets than 0, 1, 2, ..."""
    batch = build_batch(rows, codec=codec, offset_deltas=deltas)
    _INT32.pack_into(batch, _LAST_DELTA_AT, len(rows) - 1)
    seal(batch, 0, len(batch))
    return batch


FAULTS = (
    "checksum", "cut", "two batches", "count", "base offset", "control", "lying maximum",
    "claims append time", "left over", "short", "negative count", "other base time",
)  # fmt: skip


def _within_reach(times: tuple[int, ...]) -> list[int]:
    """A delta is a signed 64-bit number: times farther off cannot be written."""
    first = times[0]
    return [at if -(2**63) <= at - first < 2**63 else first for at in times]


def _with_fault(batch: bytearray, fault: str) -> bytearray:
    match fault:
        case "checksum":
            batch[-1] ^= 0xFF
        case "cut" | "short":
            del batch[30 if fault == "short" else -1 :]
        case "two batches":
            batch += bytes(batch)
        case _:
            _with_sealed_fault(batch, fault)
            seal(batch, 0, len(batch))
    return batch


def _with_sealed_fault(batch: bytearray, fault: str) -> None:
    """A fault under a good checksum."""
    match fault:
        case "count" | "negative count":
            count = -1 if fault == "negative count" else _INT32.unpack_from(batch, _COUNT_AT)[0] + 1
            _INT32.pack_into(batch, _COUNT_AT, count)
            _INT32.pack_into(batch, _LAST_DELTA_AT, count - 1)
        case "lying maximum":
            _INT64.pack_into(batch, _MAX_TIME_AT, 77)
        case "claims append time":
            attributes = _INT16.unpack_from(batch, _ATTRIBUTES_AT)[0]
            _INT16.pack_into(batch, _ATTRIBUTES_AT, attributes | LOG_APPEND_TIME)
        case "left over":
            batch += b"\0"
            _INT32.pack_into(batch, _LENGTH_AT, len(batch) - LENGTH_ENDS)
        case "other base time":
            _shift_base_time(batch)


def _shift_base_time(batch: bytearray) -> None:
    """All records a minute earlier by the base time alone: the deltas and the maximum stay."""
    base = _INT64.unpack_from(batch, _BASE_TIME_AT)[0]
    _INT64.pack_into(batch, _BASE_TIME_AT, max(base - _SHIFT_MS, -(2**63)))
