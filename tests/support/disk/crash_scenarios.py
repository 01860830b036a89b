"""Lives of a partition in which the power may go at any call. Each is driven by one seed."""

from collections.abc import Callable

from protocol.records.compression import Codec
from tests.support.disk.crash_world import CrashWorld


def appends_and_rolls(world: CrashWorld) -> None:
    """Batches of every size, some promised, over several segments."""
    world.create()
    for _ in range(14):
        for _ in range(world.dice.randint(1, 3)):
            world.append(acks_all=world.dice.random() < 0.5, records=world.dice.randint(1, 3))
        if world.dice.random() < 0.6:
            world.sync()


def checkpoints(world: CrashWorld) -> None:
    """Checkpoints between appends: what they say must never be ahead of the disk."""
    world.create()
    for _ in range(8):
        world.append(records=world.dice.randint(1, 3))
        if world.dice.random() < 0.7:
            world.sync()
        world.manager.checkpoint()


def restarts(world: CrashWorld) -> None:
    """Clean stops and kills: marks, snapshots and indexes are written and read."""
    world.create()
    for _ in range(5):
        for _ in range(3):
            world.append(records=world.dice.randint(1, 2))
        if world.dice.random() < 0.5:
            world.sync()
        if world.dice.random() < 0.5:
            world.restart()
        else:
            world.kill()


def deletions(world: CrashWorld) -> None:
    """The start offset moves, then the partition goes."""
    world.create()
    for _ in range(4):
        world.append(records=3)
        world.sync()
        world.delete_records(world.dice.randint(0, world.log.snapshot.high_watermark))
    world.delete()
    while world.manager.remove_deleted():
        continue


def cuts(world: CrashWorld) -> None:
    """The end is cut off, synced or not, and other batches get its offsets."""
    world.create()
    for _ in range(4):
        for _ in range(world.dice.randint(4, 12)):
            world.append()
            if world.dice.random() < 0.5:
                world.sync()
        if world.dice.random() < 0.5:
            world.manager.checkpoint()
        end = world.log.snapshot.log_end_offset
        world.cut(world.dice.randint(max(0, end - 15), end))


def producers(world: CrashWorld) -> None:
    """An idempotent producer, compressed batches, snapshots at roll."""
    world.create()
    sequence = 0
    for _ in range(10):
        count = world.dice.randint(1, 3)
        world.append(
            records=count,
            codec=world.dice.choice((Codec.NONE, Codec.GZIP)),
            producer_id=9,
            producer_epoch=0,
            base_sequence=sequence,
        )
        sequence += count
        if world.dice.random() < 0.5:
            world.sync()


SCENARIOS: dict[str, Callable[[CrashWorld], None]] = {
    each.__name__: each
    for each in (appends_and_rolls, checkpoints, restarts, deletions, cuts, producers)
}


def run(name: str, seed: int, survivals: int, *, nested: bool = False) -> CrashWorld:
    """One life; an AssertionError names what was promised and not kept."""
    world = CrashWorld(seed, survivals, nested=nested)
    SCENARIOS[name](world)
    return world
