"""Loop, lanes and fsync threads of one partition, in orders that a seed makes up.

The life of a seed is `tests.support.threads.interleaved_life`; the same seed, the same order.
"""

from tests.prove import Outcome, Work, spread
from tests.support.threads.interleaved_life import play

SLICE_POINTS = 400
AT_ONCE = 50


def some_seeds(seeds: range) -> tuple[int, list[str]]:
    """How often threads changed places in these lives, and the findings."""
    changes, findings = 0, []
    for seed in seeds:
        try:
            changes += play(seed)
        except Exception as error:  # noqa: BLE001 - whatever it is, an answer of the broker it is not
            told = f"{type(error).__name__}: {error}"
            findings.append(f"{told} (scripts/prove interleavings --seed {seed} --points 1)")
    return changes, findings


def prove(work: Work) -> Outcome:
    """So many lives, each in an order of its own."""
    wanted, changes = work.wanted(SLICE_POINTS), 0
    findings: list[str] = []
    end = work.seed + wanted
    parts = [range(at, min(at + AT_ONCE, end)) for at in range(work.seed, end, AT_ONCE)]
    for found in spread(work, some_seeds, parts):
        changes += found[0]
        findings += found[1]
    return Outcome(
        wanted,
        "schedules",
        f"{work.seed}-{end - 1}",
        tuple(findings),
        note=f"{changes} changes of threads",
    )
