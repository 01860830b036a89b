"""Bodies of commits: read as they were written, or named as damaged."""

from uuid import UUID

import pytest

from broker.fleet.catalog.rows import CommitId, Incarnation, PartitionKey, Span
from broker.fleet.frame import (
    ArrivedBatch,
    CorruptFrame,
    PartitionBatches,
    StoredBatch,
    make_frame,
    read_directory,
    read_part,
)
from protocol.checksum import crc32c

FLEET = UUID(int=5)
COMMIT = CommitId(Incarnation(3, 7), 12)
A, B = PartitionKey(UUID(int=1), 0), PartitionKey(UUID(int=2), 4)
TWO = [StoredBatch(10, 14, 900, 1000, b"one"), StoredBatch(15, 15, 800, 1001, b"")]
PARTS = [
    PartitionBatches(A, 2, TWO),
    PartitionBatches(B, 9, [StoredBatch(0, 0, -1, -5, bytes(1000))]),
]


def test_a_body_tells_what_it_has() -> None:
    frame = make_frame(FLEET, COMMIT, PARTS)
    assert read_directory(frame.body, FLEET) == (COMMIT, list(frame.spans))
    assert [tuple(each)[:4] for each in frame.spans] == [(A, 10, 15, 2), (B, 0, 0, 9)]
    assert [each.max_timestamp for each in frame.spans] == [900, -1]
    assert frame.crc == crc32c(frame.body[:-4])


def part_of(body: bytes, span: Span) -> bytes:
    return body[span.position : span.position + span.size_bytes]


def test_a_part_is_read_alone() -> None:
    frame = make_frame(FLEET, COMMIT, PARTS)
    first, second = (read_part(part_of(frame.body, each)) for each in frame.spans)
    assert first == [ArrivedBatch(1000, b"one"), ArrivedBatch(1001, b"")]
    assert second == [ArrivedBatch(-5, bytes(1000))]


def test_every_changed_byte_is_found() -> None:
    body = make_frame(FLEET, COMMIT, PARTS[:1]).body
    [span] = make_frame(FLEET, COMMIT, PARTS[:1]).spans
    for at in range(len(body)):
        changed = body[:at] + bytes([body[at] ^ 0x10]) + body[at + 1 :]
        with pytest.raises(CorruptFrame):
            read_directory(changed, FLEET)
        if span.position <= at < span.position + span.size_bytes:
            with pytest.raises(CorruptFrame):
                read_part(part_of(changed, span))


@pytest.mark.parametrize("size", [0, 4, 7, 30])
def test_a_cut_body_is_found(size: int) -> None:
    frame = make_frame(FLEET, COMMIT, PARTS)
    with pytest.raises(CorruptFrame):
        read_directory(frame.body[:size], FLEET)
    with pytest.raises(CorruptFrame):
        read_part(part_of(frame.body, frame.spans[0])[:size])


def test_a_part_that_counts_wrongly_is_found() -> None:
    """As long as its checksum is right, it was made so."""
    for head in (b"\xff\xff\xff\xff", b"\0\0\0\2" + bytes(12) + b"\0\0\0\0\0\0\0\0\0\0\0\7"):
        with pytest.raises(CorruptFrame):
            read_part(head + crc32c(head).to_bytes(4, "big"))


def test_another_fleets_body_is_refused() -> None:
    with pytest.raises(CorruptFrame, match="another fleet"):
        read_directory(make_frame(FLEET, COMMIT, PARTS).body, UUID(int=6))
