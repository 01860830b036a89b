"""The power goes at every call: of a partition's life, and of a whole broker's, by seed.

Partitions: `crash_scenarios`, `removal_world`, `cleaning_world`. Brokers: `broker_lives`, with
transactions, groups, topics that come again, settings, quotas and ids, and an oracle that asks what
clients ask.
"""

from itertools import count, islice

from tests.prove import Outcome, Work, quietly, spread
from tests.support import broker_lives, crash_scenarios, removal_world
from tests.support.cleaning_world import CleaningWorld
from tests.support.cleaning_world import live as live_cleaning

SLICE_POINTS = 4_000
LIVES_AT_ONCE = 2

Tally = tuple[int, int]
"""Points visited, logs that ended read-only."""


def partition_life(name: str, seed: int, *, nested: bool) -> Tally:
    """A life of one partition."""
    world = crash_scenarios.run(name, seed, survivals=4, nested=nested)
    return world.points, world.damaged


def removal(seed: int, *, nested: bool) -> Tally:
    """Retention beside appends."""
    settings = removal_world.SETTINGS[seed % len(removal_world.SETTINGS)]
    world = removal_world.RemovalWorld(seed, 2, nested=nested, **settings)
    removal_world.live(world)
    return world.points, world.damaged


def cleaning(seed: int) -> Tally:
    """Compaction beside appends."""
    world = CleaningWorld(seed, 2, delete_retention_ms=1000)
    live_cleaning(world)
    return world.points, world.damaged


def broker_life(name: str, seed: int, *, nested: bool) -> Tally:
    """A life of a broker."""
    life = broker_lives.run(name, seed, nested=nested)
    return life.points, life.damaged


def one_life(life: tuple[str, int]) -> tuple[int, int, list[str]]:
    """One life with one seed: points visited, logs that ended read-only, findings."""
    name, seed = life
    nested = seed % 3 == 2
    try:
        with quietly():
            if name in crash_scenarios.SCENARIOS:
                points, damaged = partition_life(name, seed, nested=nested)
            elif name in broker_lives.LIVES:
                points, damaged = broker_life(name, seed, nested=nested)
            else:
                points, damaged = (
                    removal(seed, nested=nested) if name == "removed" else cleaning(seed)
                )
    except AssertionError as error:
        return 0, 0, [f"{name}, seed {seed}: {error} (scripts/prove crashes --seed {seed})"]
    return points, damaged, []


LIVES = (*crash_scenarios.SCENARIOS, "removed", "cleaned", *broker_lives.LIVES)
PROVED = (*crash_scenarios.SCENARIOS, "removed", "cleaned")
"""The lives of the slice: those without a known finding."""


def prove(work: Work) -> Outcome:
    """Lives of all kinds until enough points were visited."""
    wanted, points, damaged = work.wanted(SLICE_POINTS), 0, 0
    names = PROVED if work.points is None else LIVES
    findings: list[str] = []
    seeds = count(work.seed)
    while points < wanted:
        lives = [(name, seed) for seed in islice(seeds, LIVES_AT_ONCE) for name in names]
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
