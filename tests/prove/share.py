"""Histories of share partitions against a dictionary of records: none lost, none finished twice.

The history of a seed is `tests.support.histories.share_play`; a seed that finds something is
replayed by itself.
"""

from tests.prove import Outcome, Work, spread
from tests.support.histories.share_play import play

SLICE_POINTS = 1500
AT_ONCE = 250


def some_seeds(seeds: range) -> list[str]:
    """The findings of these histories."""
    findings = []
    for seed in seeds:
        try:
            play(seed)
        except Exception as error:  # noqa: BLE001 - whatever it raises is what was found
            told = f"{type(error).__name__}: {error}"
            findings.append(f"{told} (scripts/prove share --seed {seed} --points 1)")
    return findings


def prove(work: Work) -> Outcome:
    """So many histories."""
    end = work.seed + work.wanted(SLICE_POINTS)
    parts = [range(at, min(at + AT_ONCE, end)) for at in range(work.seed, end, AT_ONCE)]
    findings = [each for found in spread(work, some_seeds, parts) for each in found]
    return Outcome(end - work.seed, "histories", f"{work.seed}-{end - 1}", tuple(findings))
