"""Histories of a fleet: nothing acknowledged lost, none twice, no owner beside another.

The history of a seed is `tests.support.fleet.fleet_history`, for one in ten also one of segments in
the store (`tests.support.fleet.segment_history`), for one in three also one of transactions over
nodes (`tests.support.fleet.transaction_history`); a seed that finds something is replayed alone.
"""

import asyncio
from typing import NamedTuple

from tests.prove import Outcome, Work, quietly, shown, spread
from tests.support.fleet.fleet_history import play
from tests.support.fleet.machines.sim_node import Logs
from tests.support.fleet.segment_history import play_segments
from tests.support.fleet.transaction_history import play_transactions

SLICE_POINTS = 300
AT_ONCE = 50
REAL_EVERY = 10
"""One in so many histories has real logs on simulated disks, two others have also segments in a
store, one of them compacted; they take several times as long.
"""
TIERED, COMPACTED = 5, 7
TRANSACTIONS_EVERY = 3


class Part(NamedTuple):
    """Result of some histories."""

    lives: int
    shards_taken: int
    findings: tuple[str, ...]


def logs_of(seed: int) -> Logs:
    """The kind of a history."""
    kinds = {0: Logs.REAL, TIERED: Logs.TIERED, COMPACTED: Logs.COMPACTED}
    return kinds.get(seed % REAL_EVERY, Logs.LISTS)


def some_seeds(seeds: range) -> Part:
    """Plays them."""
    lives, taken, findings = 0, 0, list[str]()
    with quietly():
        for seed in seeds:
            try:
                lived = play(seed, logs_of(seed))
                if seed % REAL_EVERY == 1:
                    asyncio.run(play_segments(seed, is_compacted=seed % (2 * REAL_EVERY) == 1))
                if seed % TRANSACTIONS_EVERY == 2:
                    play_transactions(seed)
            except Exception as error:  # noqa: BLE001 - whatever it raises is what was found
                found = f"{type(error).__name__}: {error}"
                findings.append(f"{found} (scripts/prove fleet --seed {seed} --points 1)")
            else:
                lives, taken = lives + lived.lives, taken + lived.shards_taken
    return Part(lives, taken, tuple(findings))


def prove(work: Work) -> Outcome:
    """So many histories."""
    end = work.seed + work.wanted(SLICE_POINTS)
    parts = [range(at, min(at + AT_ONCE, end)) for at in range(work.seed, end, AT_ONCE)]
    found = list(shown(spread(work, some_seeds, parts)))
    return Outcome(
        end - work.seed,
        "histories",
        f"{work.seed}-{end - 1}",
        tuple(finding for each in found for finding in each.findings),
        note=f"{sum(each.lives for each in found)} lives of nodes, "
        f"{sum(each.shards_taken for each in found)} take-overs of shards",
    )
