"""Logs that go on in an object store, against twins that do not, and through power cuts.

A point is a history: some forty steps of both twins by one seed, while the store refuses, loses
answers, spoils them, loses objects or is away. With every 500th one, a life of a log in both tiers
loses its power at every call of its disk and of its store.
"""

from typing import NamedTuple

from tests.prove import Outcome, Work, quietly, shown, spread
from tests.support.tier.often_full import often_full
from tests.support.tier.tier_crash_world import TierCrashWorld, live
from tests.support.tier.tier_twins import TierTwins

SLICE_HISTORIES = 200
AT_ONCE = 50
CUT_EVERY = 500


class Seen(NamedTuple):
    """Results of some seeds."""

    answers: int = 0
    errors: int = 0
    cuts: int = 0
    findings: tuple[str, ...] = ()

    def plus(self, other: "Seen") -> "Seen":
        """Both together."""
        return Seen(
            self.answers + other.answers,
            self.errors + other.errors,
            self.cuts + other.cuts,
            self.findings + other.findings,
        )


def some_seeds(seeds: range) -> Seen:
    """Histories by these seeds, and the power cuts among them."""
    seen = Seen()
    with quietly():
        for seed in seeds:
            seen = seen.plus(one_history(seed))
            if seed % CUT_EVERY == 0:
                seen = seen.plus(one_life(seed))
    return seen


def one_history(seed: int) -> Seen:
    """Twins, one of them with a store."""
    twins = TierTwins(seed)
    try:
        twins.live()
    except Exception as error:  # noqa: BLE001 - whatever is let out was found
        return Seen(findings=(_told(seed, error),))
    return Seen(twins.answers, twins.errors)


@often_full()
def one_life(seed: int) -> Seen:
    """A life with a power cut at every call."""
    world = TierCrashWorld(seed, 1, nested=seed % 3 == 2)
    try:
        live(world)
    except Exception as error:  # noqa: BLE001 - whatever is let out was found
        return Seen(findings=(_told(seed, error),))
    return Seen(cuts=world.points)


def _told(seed: int, error: Exception) -> str:
    found = f"seed {seed}: {type(error).__name__}: {error}"
    return f"{found} (scripts/prove tier --seed {seed} --points 1)"


def prove(work: Work) -> Outcome:
    """So many histories."""
    end = work.seed + work.wanted(SLICE_HISTORIES)
    parts = [range(at, min(at + AT_ONCE, end)) for at in range(work.seed, end, AT_ONCE)]
    seen = Seen()
    for found in shown(spread(work, some_seeds, parts)):
        seen = seen.plus(found)
    return Outcome(
        end - work.seed,
        "histories",
        f"{work.seed}-{end - 1}",
        seen.findings,
        note=f"{seen.answers} answers, {seen.errors} errors of the store, {seen.cuts} power cuts",
    )
