"""Archives whose runs die at any commit, while the clock goes on and options change: by seed.

Every offset is counted over all tables: none is lost, none is there twice.
"""

import random
import tempfile
from collections import Counter
from itertools import count, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pipeline.sinks.archive.run import Wishes
from tests.prove import Outcome, Work, spread
from tests.support.spark.archives import VALUES, opened, rows_of, run
from tests.support.spark.made_up_records import DAY_MS, TODAY_MS, MadeUp, rows_between

SLICE_POINTS = 12
LIVES_AT_ONCE = 4
FORMATS = ("parquet", "delta", "iceberg")
RUNS = 4
COMMIT = {"parquet": "_settle", "delta": "_add", "iceberg": "_add"}


class Died(BaseException):
    """The process has ended."""


def one_seed(seed: int) -> tuple[int, list[str]]:
    """A life of one archive: how often it died, and findings."""
    dice = random.Random(seed)
    kind = FORMATS[seed % len(FORMATS)]
    with tempfile.TemporaryDirectory() as folder:
        root, end, died = Path(folder, "archive"), 0, 0
        for _ in range(RUNS):
            end += dice.randint(0, 400)
            died += _run(kind, root, end, dice, dies_at=dice.randrange(6))
        _run(kind, root, end, dice, dies_at=None)
        seen = Counter(row["offset"] for _, row in rows_of(kind, root))
    wanted = {row.offset for row in rows_between(0, end)}
    lost, doubled = len(wanted - seen.keys()), sum(times > 1 for times in seen.values())
    if not lost and not doubled and seen.keys() == wanted:
        return died, []
    told = f"{kind}, seed {seed}: {lost} lost, {doubled} doubled of {len(wanted)}"
    return died, [f"{told} (scripts/prove archives --seed {seed} --points 1)"]


def _run(kind: str, root: Path, end: int, dice: random.Random, *, dies_at: int | None) -> bool:
    """One run at some later time, with some options; whether it died, before or behind a commit."""
    now_ms = TODAY_MS + dice.randint(0, 3 * DAY_MS)
    wishes = Wishes(
        dice.choice([1, 60_000, 1 << 30]),
        dice.choice([DAY_MS, 3 * DAY_MS, 100 * DAY_MS, 100_000 * DAY_MS]),
        dice.choice([-2 * DAY_MS, 0, DAY_MS, 100_000 * DAY_MS]),
        VALUES,
    )
    with (
        patch("pipeline.sinks.archive.run.time.time_ns", lambda: now_ms * 1_000_000),
        opened(kind, root) as target,
    ):
        if dies_at is not None:
            _doom(target, COMMIT[kind], dies_at // 2, is_behind=bool(dies_at % 2))
        try:
            run(target, MadeUp({0: end}), wishes)
        except Died:
            return True
    return False


def _doom(target: Any, name: str, steps: int, *, is_behind: bool) -> None:
    """It dies at a commit to a table, after so many others."""
    original, left = getattr(target, name), [steps]

    def dying(*given: Any) -> Any:
        left[0] -= 1
        if left[0] < 0 and not is_behind:
            raise Died
        result = original(*given)
        if left[0] < 0:
            raise Died
        return result

    setattr(target, name, dying)


def prove(work: Work) -> Outcome:
    """Lives until the archives have died often enough."""
    wanted, points = work.wanted(SLICE_POINTS), 0
    findings: list[str] = []
    seeds = count(work.seed)
    while points < wanted:
        for died, found in spread(work, one_seed, list(islice(seeds, LIVES_AT_ONCE))):
            points, findings = points + died, findings + found
    return Outcome(points, "deaths", f"{work.seed}-{next(seeds) - 1}", tuple(findings))
