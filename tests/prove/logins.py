"""Strangers at the gate: log-ins in any order with any tokens, and certificates of any name.

A point is a step: one frame of a connection that has not proved who it is, or one subject of a
certificate. A client that gets in without a proof, or is kept out with one, is a finding, and so is
an error that nobody foresaw.
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.prove import Outcome, Work, quietly, spread
from tests.support.logins.names import NameWalk
from tests.support.logins.walk import Walk

SLICE_STEPS = 80_000
STEPS_OF_A_SEED = 20_000


class Walked(NamedTuple):
    """What a seed came to."""

    steps: int
    let_in: int
    finding: str | None


def one_seed(seed: int) -> Walked:
    """Log-ins by that seed, and a fifth as many names."""
    logins, names = Walk(seed), NameWalk(seed)
    with quietly():
        found = _finding(lambda: logins.walk(STEPS_OF_A_SEED * 4 // 5))
        found = found or _finding(lambda: names.walk(STEPS_OF_A_SEED // 5))
    told = found and f"seed {seed}: {found} (scripts/prove logins --points 1 --seed {seed})"
    return Walked(logins.steps + names.steps, logins.let_in, told)


def _finding(walk: Callable[[], None]) -> str | None:
    try:
        walk()
    except Exception as error:  # noqa: BLE001 - whatever is let out was found
        return repr(error)
    return None


def prove(work: Work) -> Outcome:
    """As many steps as wanted, in whole seeds."""
    count = -(-work.wanted(SLICE_STEPS) // STEPS_OF_A_SEED)
    seeds = range(work.seed, work.seed + count)
    results = list(spread(work, one_seed, seeds))
    findings = tuple(each.finding for each in results if each.finding is not None)
    let_in = sum(each.let_in for each in results)
    if not let_in:
        findings += ("nobody was let in: nothing was tried behind the first token",)
    note = f"{let_in} let in with a proof"
    steps = sum(each.steps for each in results)
    return Outcome(steps, "steps", f"{seeds[0]}-{seeds[-1]}", findings, note=note)
