"""Places of segments, and the reason why a closed one is not copied."""

from protocol.records.builder import build_batch
from storage.log.segment_tiers import SegmentPlace
from storage.tier.eligible import CopyReason, copy_reason
from tests.support.records.logs import append, append_bytes, make_durable
from tests.support.tier.tier_world import TierWorld

T0 = 1_700_000_000_000
LOCAL, STORE, BOTH = SegmentPlace.LOCAL, SegmentPlace.STORE, SegmentPlace.BOTH


def places(world: TierWorld) -> list[SegmentPlace]:
    snapshot = world.log.snapshot
    return list(world.log.tiers.places(snapshot, is_rewritten=False))


def reason(world: TierWorld) -> CopyReason:
    snapshot = world.log.snapshot
    return copy_reason(snapshot, snapshot.segments[0], snapshot.segments[1].base_offset)


def test_segments_are_here_in_the_store_or_in_both() -> None:
    world = TierWorld()
    for number in range(60):
        append(world.log, T0 + number, value=b"x" * 100)
    count = len(world.log.snapshot.segments)
    assert count > 2
    assert places(world) == [LOCAL] * count
    world.copy_all()
    assert places(world) == [BOTH] * (count - 1) + [LOCAL]
    world.env.clock.advance(10**9)  # type: ignore[attr-defined]
    world.drop_all()
    assert places(world) == [STORE] * (count - 1) + [LOCAL]
    for number in range(60):
        append(world.log, T0 + number, value=b"x" * 100)
    assert places(world)[: count - 1] == [STORE] * (count - 1)
    assert set(places(world)[count - 1 :]) == {LOCAL}


def test_a_segment_that_is_not_synced_waits_for_that() -> None:
    world = TierWorld()
    append(world.log, T0)
    world.log.roll()
    assert reason(world) is CopyReason.NOT_SYNCED
    make_durable(world.log)
    assert reason(world) is CopyReason.DUE


def test_an_open_transaction_is_named() -> None:
    world = TierWorld()
    data = build_batch(
        [(T0, b"k", b"v")], producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
    )
    append_bytes(world.log, data)
    world.log.roll()
    make_durable(world.log)
    assert reason(world) is CopyReason.OPEN_TRANSACTION
