"""A partition that loses its power at every call while retention takes segments from it."""

from storage.log.lifecycle import learn_times, plan_retention
from tests.support.disk.crash_world import CrashWorld
from tests.support.disk.simdisk import SimFileSystem


class RemovalWorld(CrashWorld):
    """Retention runs between appends; `decided` is the highest start offset that it asked for."""

    decided = 0

    def remove_old(self) -> None:
        log = self.log
        learn_times(log, 1000)
        plan = plan_retention(log, self.clock.now_ms())
        self.decided = max(self.decided, plan.start_offset)
        while self.manager.remove_segments(
            log, plan.start_offset, all_go=plan.rolls_first
        ).has_more:
            continue
        self.ledger.start_offset = log.snapshot.log_start_offset

    def judge(self, disk: SimFileSystem) -> None:
        if self.ledger.exists:
            found = self.started(disk.after_kill()).logs["t", 0].snapshot
            assert found.log_start_offset <= self.decided, "more went than was decided"
        super().judge(disk)


def live(world: RemovalWorld) -> None:
    """Appends, syncs, retention by size and time, checkpoints, restarts and kills."""
    world.create()
    dice = world.dice
    for _ in range(5):
        for _ in range(dice.randint(1, 7)):
            world.append(acks_all=dice.random() < 0.5, records=dice.randint(1, 3))
        if dice.random() < 0.7:
            world.sync()
        world.clock.advance(dice.choice((0, 3, 500)))
        world.remove_old()
        if dice.random() < 0.5:
            world.manager.checkpoint()
        if dice.random() < 0.6:
            world.manager.remove_deleted()
        match dice.randrange(4):
            case 0:
                world.restart()
            case 1:
                world.kill()


SETTINGS = (
    {"retention_bytes": 900},
    {"retention_bytes": 0},
    {"retention_ms": 100, "horolog_retention_clock": "record"},
    {"retention_ms": 100, "horolog_retention_clock": "arrival"},
)
