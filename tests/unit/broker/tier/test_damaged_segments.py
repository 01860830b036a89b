"""Segments that were damaged on this disk before they are copied to the store."""

import pytest

from broker.tier.tiering import Tiering
from protocol.records.scan import scan_batches
from storage.files.layout import LOG
from storage.log.log import Log
from storage.tier import copying
from storage.tier.copying import DamagedSegment
from storage.tier.tiered_log import TieredLog
from tests.unit.broker.tier.test_room import TOPIC, ShortWorld


class Shared:
    """A fleet whose rows name all that was copied."""

    def is_led(self, log: Log) -> bool:
        return True

    async def named(self, tiered: TieredLog) -> None: ...

    async def start_named(self, log: Log) -> None: ...


VALUE, OFFSET = 500, 6
"""Places in the last batch of a segment; no checksum covers its offset."""


async def copied(world: ShortWorld, tiering: Tiering, place: int = VALUE) -> list[str]:
    """Objects with records, after a byte of the first segment has changed."""
    await world.make_topic("t", **TOPIC)
    await world.write(9)
    file = world.fs.open(world.log.snapshot.segments[0].path_of(LOG))
    begin = scan_batches(file.read_at(0, file.size())).batches[-1][0]
    assert begin + VALUE < file.size()
    file.write_at(begin + place, b"\xff")
    for _ in range(2):
        await tiering.run()
    return [key for key in world.store.objects if key.endswith(".log")]


@pytest.mark.parametrize("place", [VALUE, OFFSET])
async def test_in_a_fleet_a_damaged_segment_is_not_copied_and_its_log_is_made_again(
    monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """Commits have it: its leader takes it from them."""
    monkeypatch.setattr(copying, "epoch_of", lambda _: 1)
    world = ShortWorld()
    tiering = Tiering(world.tiering._parts._replace(shared=Shared()))
    assert await copied(world, tiering, place) == []
    assert isinstance(world.log.failed, DamagedSegment)


async def test_a_broker_alone_copies_what_it_has() -> None:
    """It has nothing else than that segment, and goes on."""
    world = ShortWorld()
    assert await copied(world, world.tiering) != []
    assert world.log.takes_changes
