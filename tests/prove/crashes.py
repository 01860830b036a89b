"""The power goes at every call: of a partition's life, and of a whole broker's, by seed.

Partitions: `crash_scenarios`, `removal_world`, `cleaning_world`, `aborting_logs`. Brokers:
`broker_lives`, with transactions, groups, topics that come again, settings, quotas and ids, and an
oracle that asks what clients ask.
"""

from collections.abc import Callable
from itertools import count, islice

from tests.prove import Outcome, Work, quietly, spread
from tests.support.disk import crash_scenarios, removal_world
from tests.support.disk.cleaning_world import CleaningWorld
from tests.support.disk.cleaning_world import live as live_cleaning
from tests.support.records.aborting_logs import AbortingLife
from tests.support.worlds import broker_lives

SLICE_POINTS = 8000  # a round: each life with a seed
SEEDS_AT_ONCE = 1

Tally = tuple[int, int]
"""Points visited, logs that ended read-only."""


def is_nested(seed: int) -> bool:
    """Whether the start after a cut is cut as well."""
    return seed % 3 == 2


def partition_life(name: str, seed: int, *, nested: bool) -> Tally:
    """A life of one partition."""
    world = crash_scenarios.run(name, seed, survivals=4, nested=nested)
    return world.points, world.damaged


def removal(seed: int) -> Tally:
    """Retention beside appends."""
    nested = is_nested(seed)
    settings = removal_world.SETTINGS[seed % len(removal_world.SETTINGS)]
    world = removal_world.RemovalWorld(seed, 2, nested=nested, **settings)
    removal_world.live(world)
    return world.points, world.damaged


def cleaning(seed: int) -> Tally:
    """Compaction beside appends."""
    world = CleaningWorld(seed, 2, delete_retention_ms=1000)
    live_cleaning(world)
    return world.points, world.damaged


def aborting(seed: int) -> Tally:
    """Compaction of aborted transactions; runs come to their end, or are given up."""
    life = AbortingLife(seed, survivals=1 + seed % 2)
    life.live()
    return life.points, 0


PARTITIONS: dict[str, Callable[..., Tally]] = {
    "removed": removal, "cleaned": cleaning, "aborting": aborting
}  # fmt: skip


def broker_life(name: str, seed: int, *, nested: bool) -> Tally:
    """A life of a broker."""
    life = broker_lives.run(name, seed, nested=nested)
    return life.points, life.damaged


def one_life(life: tuple[str, int]) -> tuple[int, int, list[str]]:
    """One life with one seed: points visited, logs that ended read-only, findings."""
    name, seed = life
    nested = is_nested(seed)
    try:
        with quietly():
            if name in crash_scenarios.SCENARIOS:
                points, damaged = partition_life(name, seed, nested=nested)
            elif name in broker_lives.LIVES:
                points, damaged = broker_life(name, seed, nested=nested)
            else:
                points, damaged = PARTITIONS[name](seed)
    except AssertionError as error:
        return 0, 0, [f"{name}, seed {seed}: {error} (scripts/prove crashes --seed {seed})"]
    return points, damaged, []


LIVES = (*broker_lives.LIVES, *crash_scenarios.SCENARIOS, *PARTITIONS)
"""The longest first, so that no process waits for the last."""


def prove(work: Work) -> Outcome:
    """Lives of all kinds until enough points were visited."""
    wanted, points, damaged = work.wanted(SLICE_POINTS), 0, 0
    findings: list[str] = []
    seeds = count(work.seed)
    while points < wanted:
        lives = [(name, seed) for seed in islice(seeds, SEEDS_AT_ONCE) for name in LIVES]
        for found in spread(work, one_life, lives):
            points, damaged = points + found[0], damaged + found[1]
            findings += found[2]
    return Outcome(
        points,
        "crash points",
        f"{work.seed}-{next(seeds) - 1}",
        tuple(findings),
        note=f"{damaged} logs read-only",
    )
