"""Strangers send what they like, all timers fire, the broker starts again: it must be as before.

A point is a sequence (`hostile_life`): two rounds of requests over several connections, valid,
damaged and hostile; after each, time passes and the broker is stopped, killed, or loses its power.
"""

import asyncio

from tests.prove import Outcome, Work, quietly, spread
from tests.support.worlds.hostile_life import FindingError, HostileLife
from tests.support.worlds.hostile_oracle import missing

SLICE_SEQUENCES = 6
ROUNDS, REQUESTS = 2, 30
Lived = tuple[int, str | None]
"""Requests that were sent, what was found."""


def one_sequence(seed: int) -> Lived:
    """A life with that seed."""

    async def live() -> Lived:
        life = HostileLife(seed)
        try:
            await life.live(ROUNDS, REQUESTS)
        except FindingError as error:
            return life.requests, f"seed {seed}: {error} (scripts/prove hostile --seed {seed})"
        return life.requests, None

    with quietly():
        return asyncio.run(live())


def prove(work: Work) -> Outcome:
    """As many sequences as wanted."""
    lacking = missing()
    if lacking is not None:
        return Outcome(0, "sequences", skipped=lacking)
    seeds = range(work.seed, work.seed + work.wanted(SLICE_SEQUENCES))
    results = list(spread(work, one_sequence, seeds))
    findings = tuple(found for _, found in results if found is not None)
    note = f"{sum(sent for sent, _ in results)} requests"
    return Outcome(len(seeds), "sequences", f"{seeds[0]}-{seeds[-1]}", findings, note=note)
