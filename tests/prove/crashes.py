"""The power goes at every call of a partition's life: `tests.support.crash_scenarios`, by seed."""

from itertools import count, islice

from tests.prove import Outcome, Work, spread
from tests.support.crash_scenarios import SCENARIOS, run

SLICE_POINTS = 4_000
LIVES_AT_ONCE = 2


def one_seed(seed: int) -> tuple[int, int, list[str]]:
    """All lives with one seed: points visited, logs that ended read-only, findings."""
    points, damaged, findings = 0, 0, []
    for name in SCENARIOS:
        try:
            world = run(name, seed, survivals=4, nested=seed % 3 == 2)
        except AssertionError as error:
            findings.append(f"{name}, seed {seed}: {error} (scripts/prove crashes --seed {seed})")
        else:
            points += world.points
            damaged += world.damaged
    return points, damaged, findings


def prove(work: Work) -> Outcome:
    """Lives of all kinds until enough points were visited."""
    wanted, points, damaged = work.wanted(SLICE_POINTS), 0, 0
    findings: list[str] = []
    seeds = count(work.seed)
    while points < wanted:
        for found in spread(work, one_seed, list(islice(seeds, LIVES_AT_ONCE))):
            points, damaged = points + found[0], damaged + found[1]
            findings += found[2]
    return Outcome(
        points,
        "crash points",
        f"{work.seed}-{next(seeds) - 1}",
        tuple(findings),
        note=f"{damaged} logs read-only",
    )
