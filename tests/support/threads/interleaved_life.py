"""A burst of requests to an `InterleavedWorld`, by one seed: `play`."""

import random

from protocol.records.markers import ABORT, COMMIT
from tests.support.threads.interleaved_oracle import Oracle
from tests.support.threads.interleaved_world import NOW, WATCHED, InterleavedWorld
from tests.support.threads.interleaving import Scheduler

PRODUCERS = (1, 2)
WEIGHTS = (  # of the kinds of `Life.step`
    (6, 4, 4, 4, 5, 3, 2, 1, 1),
    (3, 1, 0, 0, 1, 9, 0, 0, 0),  # searches beside the first appends after a start
    (1, 0, 5, 6, 6, 0, 1, 0, 0),  # transactions, and who reads what was committed
)


class Life:
    """Requests, one after the other, on the loop."""

    def __init__(self, world: InterleavedWorld, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._weights = world.dice.choice(WEIGHTS)

    def step(self) -> None:
        """One request."""
        world = self._world
        dice = world.dice
        log = world.log
        kind = dice.choices(range(9), self._weights)[0]
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


def _scheduler(seed: int) -> Scheduler:
    """Half of them change threads within one or two source files, and there often."""
    dice = random.Random(seed)
    if dice.random() < 0.5:
        return Scheduler(seed, lambda path: path.endswith(WATCHED))
    few = tuple(dice.sample(WATCHED, dice.randint(1, 2)))
    return Scheduler(seed, lambda path: path.endswith(few), is_narrow=True)


def play(seed: int) -> int:
    """One burst; how often threads changed places. AssertionError: a promise was broken."""
    world = InterleavedWorld(seed)
    oracle = Oracle(world)
    scheduler = _scheduler(seed)
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
