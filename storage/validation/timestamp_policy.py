"""Makes a batch with times out of bounds fit to be stored: clamp, restamp, quarantine (time.md 2).

Changed records carry the time they claimed, in decimal text, in the header
`horolog.claimed.timestamp`; theirs is the last one of that name. A batch of which records are
quarantined keeps its offsets and sequence numbers, as after compaction; one that loses all of them
stays as an empty batch, dated by its arrival, so that its producer is remembered for as long as
others. Quarantined records become a batch of their own, dated by their arrival too, with headers
that name their origin, packed with LZ4 if they had no codec. Pure: bytes in, bytes out.
"""

from array import array
from collections.abc import Iterable
from typing import NamedTuple

from protocol.records.batch import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
    seal,
)
from protocol.records.compression import Codec, deflate, deflate_lz4_pieces
from protocol.records.mistimed import Limits
from protocol.records.rewrite import (
    ALL,
    BAD,
    DECIMAL_BYTES,
    GOOD,
    GROWTH_BYTES,
    NO_TIMES,
    Rewriting,
    Times,
    header_bytes,
    header_name,
    marks_of,
    rewrite_records,
    room_for,
)
from protocol.records.walk import RecordFacts
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.validation.checked_batch import CheckedBatch, MistimedBatch, TimeRewrite
from storage.validation.dirty_timestamps import (
    Action,
    Buffer,
    Chunk,
    TimeSurvey,
    reasons,
    zone_flags,
)
from storage.validation.scratch import Scratch

CLAIMED_TIMESTAMP = "horolog.claimed.timestamp"
ARRIVAL_TIMESTAMP = "horolog.arrival.timestamp"
ORIGIN_TOPIC = "horolog.origin.topic"
ORIGIN_PARTITION = "horolog.origin.partition"
ORIGIN_OFFSET = "horolog.origin.offset"
CLIENT_ID = "horolog.client.id"
CLIENT_ADDRESS = "horolog.client.address"
REASON = "horolog.reason"

ASIDE_LZ4_LEVEL = -10  # the fastest that still finds what all quarantined records have in common
MAX_CLIENT_ID = 256  # characters of it that a quarantined record carries

_CLAIMED = header_name(CLAIMED_TIMESTAMP)
_OFFSET = header_name(ORIGIN_OFFSET)
_NOTHING = marks_of([b""] * len(reasons()))


class TooLarge(Exception):  # noqa: N818 - the state it found
    """The headers make the records larger than the topic allows."""


class Origin(NamedTuple):
    """Origin of quarantined records."""

    topic: str
    partition: int
    client_id: str
    client_address: str


class Rewritten(NamedTuple):
    """Batches to store: the batch, and before it, elsewhere, the quarantined records.

    Their bytes are in `buffers`, which are free for others once everything is stored.
    """

    batch: CheckedBatch
    aside: CheckedBatch | None
    buffers: tuple[bytearray, ...]


def rewritten(mistimed: MistimedBatch, origin: Origin, scratch: Scratch) -> Rewritten:
    """Rewrites the batch as its policy says. TooLarge; nothing is changed then."""
    batch, rewrite = mistimed.batch, mistimed.rewrite
    header = batch.header
    survey = TimeSurvey(rewrite.payload, header.record_count, header.base_timestamp, rewrite.limits)
    sets_aside = rewrite.action is Action.QUARANTINED
    plans = [_changed(batch, rewrite)]
    if sets_aside:
        plans = [plans[0]._replace(takes=GOOD), _set_aside(mistimed, rewrite.limits, origin)]
    outputs = [
        _Output(plan, rewrite, scratch, header.record_count * _growth(plan)) for plan in plans
    ]
    for chunk in survey.chunks():
        for output in outputs:
            output.add(rewrite.payload, chunk)
    dirty = survey.seen(rewrite.action)
    kept = _batch(batch, rewrite, outputs[0], header)._replace(dirty=dirty)
    aside = _batch(batch, rewrite, outputs[1], _header_aside(header)) if sets_aside else None
    return Rewritten(kept, aside, tuple(output.buffer for output in outputs))


class _Output:
    """Records as they are written, behind the room for a header."""

    def __init__(
        self, plan: Rewriting, rewrite: TimeRewrite, scratch: Scratch, room_bytes: int
    ) -> None:
        self.plan = plan
        self.count = 0
        self.end = HEADER_BYTES
        self.buffer = scratch.take(HEADER_BYTES + len(rewrite.payload) + room_bytes)
        self.times = array("q", NO_TIMES)
        self._limit_bytes = rewrite.limit_bytes
        self._rewrite = rewrite
        self._scratch = scratch

    def add(self, payload: Buffer, chunk: Chunk) -> None:
        wanted = self.end + room_for(chunk.outline, chunk.count, chunk.verdicts, self.plan)
        if wanted > len(self.buffer):
            self.buffer = self._scratch.grown(self.buffer, self.end, wanted)
        self.end, self.count = rewrite_records(
            payload, chunk.outline, chunk.first, chunk.count, chunk.verdicts, self.plan,
            self.count, self.buffer, self.end, self.times,
        )  # fmt: skip
        if self.end - HEADER_BYTES > self._limit_bytes:
            raise TooLarge(
                f"The headers that say what was wrong make the records larger than "
                f"{self._limit_bytes} bytes: send smaller batches, or right times"
            )

    def packed(self) -> tuple[memoryview, Codec]:
        """The batch, its header still to be written, and the codec of its records."""
        codec = self._rewrite.codec if self.count else Codec.NONE
        payload = memoryview(self.buffer)[HEADER_BYTES : self.end]
        if codec is Codec.NONE and self.plan.takes == BAD and self.count:
            return self._packed(deflate_lz4_pieces(payload, ASIDE_LZ4_LEVEL)), Codec.LZ4
        if codec is Codec.NONE:
            return memoryview(self.buffer)[: self.end], codec
        return self._packed([deflate(codec, payload, self._rewrite.level)]), codec

    def _packed(self, pieces: Iterable[bytes]) -> memoryview:
        """The pieces behind room for a header, in a buffer that takes the place of this one."""
        packed, end = self._scratch.take(HEADER_BYTES + (self.end >> 1)), HEADER_BYTES
        for piece in pieces:
            if end + len(piece) > len(packed):
                packed = self._scratch.grown(packed, end, end + len(piece))
            packed[end : end + len(piece)] = piece
            end += len(piece)
        self._scratch.give_back(self.buffer)
        self.buffer = packed
        return memoryview(packed)[:end]


def _changed(batch: CheckedBatch, rewrite: TimeRewrite) -> Rewriting:
    now, low, high, *_ = rewrite.limits
    is_clamped = rewrite.action is Action.CLAMPED
    return Rewriting(
        takes=ALL,
        base_timestamp=_base_of(batch, rewrite.limits),
        low=max(low, 0) if is_clamped else now,
        high=high if is_clamped else now,
        marks=_NOTHING[0],
        mark_ends=_NOTHING[1],
        mark_headers=0,
        claimed_name=_CLAIMED,
        offset_name=b"",
        base_offset=0,
        renumbers=False,
    )


def _set_aside(mistimed: MistimedBatch, limits: Limits, origin: Origin) -> Rewriting:
    facts = (
        (ORIGIN_TOPIC, origin.topic),
        (ORIGIN_PARTITION, str(origin.partition)),
        (ARRIVAL_TIMESTAMP, str(limits.now)),
        (CLIENT_ID, origin.client_id[:MAX_CLIENT_ID]),
        (CLIENT_ADDRESS, origin.client_address),
    )
    whence = b"".join(header_bytes(name, value) for name, value in facts)
    marks, ends = marks_of([whence + header_bytes(REASON, reason) for reason in reasons()])
    return Rewriting(
        takes=BAD,
        base_timestamp=limits.now,
        low=limits.now,
        high=limits.now,
        marks=marks,
        mark_ends=ends,
        mark_headers=len(facts) + 1,
        claimed_name=_CLAIMED,
        offset_name=_OFFSET,
        base_offset=mistimed.base_offset,
        renumbers=True,
    )


def _growth(plan: Rewriting) -> int:
    """Largest growth of a record, in bytes."""
    if plan.takes == GOOD:
        return GROWTH_BYTES
    return (
        GROWTH_BYTES
        + DECIMAL_BYTES
        + plan.mark_ends[2]
        + len(plan.claimed_name)
        + len(plan.offset_name)
    )


def _base_of(batch: CheckedBatch, limits: Limits) -> int:
    """The base time that the batch goes on with: its own, unless that is out of bounds.

    No delta overflows: a bound is less than 2^63 ms from the clock, or has no time beyond it, and
    the times that stay were that near to the batch's own base.
    """
    base, facts = batch.header.base_timestamp, batch.facts
    if not limits.low <= base <= limits.high:
        base = limits.now
    assert max(facts.min_timestamp, limits.low) - base >= INT64_MIN
    assert max(limits.now, min(facts.max_timestamp, limits.high)) - base <= INT64_MAX
    return base


def _header_aside(header: BatchHeader) -> BatchHeader:
    """Header of the batch of quarantined records: without sequence, without transaction."""
    return header._replace(
        attributes=0, producer_id=-1, producer_epoch=-1, base_sequence=-1, base_offset=0
    )


def _batch(
    before: CheckedBatch, rewrite: TimeRewrite, output: _Output, header: BatchHeader
) -> CheckedBatch:
    """The batch that `output` makes, as a batch that passed the checks."""
    facts = _facts(output)
    data, codec = output.packed()
    latest = facts.max_timestamp if output.count else rewrite.limits.now
    header = header._replace(
        length=len(data) - LENGTH_ENDS,
        attributes=header.attributes & ~(CODEC_MASK | LOG_APPEND_TIME) | codec,
        last_offset_delta=(output.count - 1 if output.plan.renumbers else header.last_offset_delta),
        base_timestamp=output.plan.base_timestamp if output.count else NO_TIMESTAMP,
        max_timestamp=latest,
        record_count=output.count,
    )
    HEADER.pack_into(data, 0, *header)
    seal(data, 0, len(data))
    flags = zone_flags(facts.min_timestamp, facts.max_timestamp, rewrite.limits)
    return CheckedBatch(
        data, read_header(data), latest, facts, NO_TIMESTAMP, before.arrival_ms, flags
    )


def _facts(output: _Output) -> RecordFacts:
    """Facts about the written records, as `check_records` would return them."""
    times, count = Times(*output.times), output.count
    lowest = NO_TIMESTAMP if times.untimed == count else times.minimum
    return RecordFacts(
        count, lowest, times.maximum, NO_TIMESTAMP, times.untimed, 0, times.keyless,
        first_misplaced=-1,
    )  # fmt: skip
