"""A burst of requests to an `InterleavedWorld`, by one seed: `play`."""

from protocol.records.markers import ABORT, COMMIT
from tests.support.interleaved_oracle import Oracle
from tests.support.interleaved_world import NOW, InterleavedWorld, is_watched
from tests.support.interleaving import Scheduler

PRODUCERS = (1, 2)


class Life:
    """What is asked, one request after the other, on the loop."""

    def __init__(self, world: InterleavedWorld, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle

    def step(self) -> None:
        """One request."""
        world = self._world
        dice = world.dice
        log = world.log
        kind = dice.choices(range(9), (6, 4, 4, 4, 5, 3, 2, 1, 1))[0]
        match kind:
            case 0 | 1:
                world.produce(acks=dice.choice((-1, -1, 1)), on_lane=kind == 1)
            case 2:
                world.produce(acks=-1, producer=dice.choice(PRODUCERS))
            case 3:
                world.end(dice.choice(PRODUCERS), dice.choice((ABORT, ABORT, COMMIT)))
            case 4:
                world.on_lane(self._oracle.read)
            case 5:
                time = NOW + dice.randint(0, world.counter)
                world.on_lane(lambda: self._oracle.search(time))
            case 6:
                world.in_turn(log.roll)
            case 7:
                world.on_lane(world.manager.checkpoint)
            case _:
                before = dice.randint(0, log.snapshot.high_watermark)
                world.in_turn(lambda: log.delete_records(before))
                world.in_turn(lambda: world.manager.remove_segments(log, before))


def play(seed: int) -> int:
    """One burst; how often threads changed places. AssertionError: a promise was broken."""
    world = InterleavedWorld(seed)
    oracle = Oracle(world)
    scheduler = Scheduler(seed, is_watched)
    scheduler.monitors.append(oracle.look)
    life = Life(world, oracle)
    dice = world.dice
    if dice.random() < 0.1:
        world.may_fail = True
        world.fs.inject("sync", path=".log", skip=dice.randrange(6))
    with world.served(scheduler) as loop:

        def ask() -> None:
            for _ in range(dice.randint(4, 24)):
                loop.call_later(dice.random(), life.step)
            loop.call_later(0.5, lambda: oracle.cut(seed))
            loop.run_until_idle(world.is_busy)

        scheduler.run(ask)
    oracle.judge()
    return scheduler.changes
