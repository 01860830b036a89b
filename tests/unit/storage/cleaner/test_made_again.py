"""A compacted topic is deleted and made again: nothing of the first one is read as the second's."""

from protocol.records.builder import build_batch
from tests.support.records.cleaning import COMPACT
from tests.support.tier.tier_crash_world import read_all
from tests.support.tier.tier_life import NOW, TierLife


def fill(life: TierLife, text: bytes) -> None:
    """Closed segments of records of few keys."""
    for number in range(40):
        batch = build_batch([(NOW, b"k%d" % (number % 7), text + b"%d" % number * 10)])
        life.log.append(memoryview(batch), acks_all=True, leader_epoch=0)
    life.log.roll()
    life.sync()


def test_its_compacted_segments_are_its_own() -> None:
    life = TierLife(None, cleanup_policy=COMPACT, segment_bytes=600)
    life.create()
    fill(life, b"first")
    life.clean(life.verdict())
    assert {value[:5] for value in read_all(life.log).values() if value} == {b"first"}
    life.create_again()
    fill(life, b"again and longer")
    life.clean(life.verdict())
    found = read_all(life.log)
    assert {value[:5] for value in found.values() if value} == {b"again"}
    assert len(found) == 7
