"""Segments that were damaged on this disk before they are copied to the store."""

import pytest

from broker.tier.tiering import Tiering
from storage.files.layout import LOG
from storage.log.log import Log
from storage.tier.copying import DamagedSegment
from storage.tier.tiered_log import TieredLog
from tests.unit.broker.tier.test_room import TOPIC, ShortWorld


class Shared:
    """A fleet whose rows name all that was copied."""

    def is_led(self, log: Log) -> bool:
        return True

    async def named(self, tiered: TieredLog) -> None: ...

    async def start_named(self, log: Log) -> None: ...


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_damaged_segment_is_not_copied(is_shared: bool) -> None:
    """In a fleet commits have it: its leader makes the log again from them. A broker alone has
    nothing else, and goes on.
    """
    world = ShortWorld()
    await world.make_topic("t", **TOPIC)
    await world.write(9)
    file = world.fs.open(world.log.snapshot.segments[0].path_of(LOG))
    file.write_at(file.size() // 2, b"\xff")
    parts = world.tiering._parts
    tiering = Tiering(parts._replace(shared=Shared())) if is_shared else world.tiering
    for _ in range(2):
        await tiering.run()
    assert [key for key in world.store.objects if key.endswith(".log")] == []
    assert isinstance(world.log.failed, DamagedSegment) is is_shared
    assert world.log.takes_changes is not is_shared
