"""Every mutating call of a broker's life fails once, in each way; then a restart, a retry, a cut.

The matrix tells for each kind of file and call how many cases were tried, and how many broke a
promise. A finding names life, seed, call and error; `--seed` replays its life.
"""

import asyncio
import random
import re
from collections import Counter
from itertools import count, zip_longest
from typing import NamedTuple

from tests.prove import Outcome, Work, quietly, spread
from tests.support.worlds.broker_lives import LIVES, LONGEST_SECONDS, live
from tests.support.worlds.faulty_life import FaultyLife

SLICE_POINTS = 360
STEPS = 16
ERRORS = ("eio", "enospc", "short")
WRITE = "write"


class Case(NamedTuple):
    """One call that fails."""

    life: str
    seed: int
    call: int
    error: str


class Tried(NamedTuple):
    """What came of it."""

    kind: str
    operation: str
    error: str
    finding: str | None


def lived(name: str, seed: int, fail_at: tuple[int, str] | None) -> FaultyLife:
    """One life with one fault. AssertionError: a promise was broken."""

    async def run() -> FaultyLife:
        life = FaultyLife(seed, fail_at)
        await live(life, name, STEPS)
        if fail_at is not None:
            await life.end()
        return life

    with quietly():
        return asyncio.run(asyncio.wait_for(run(), LONGEST_SECONDS))


def kind_of(path: str) -> str:
    """The kind of a file, whatever it is called."""
    name = path.rpartition("/")[2]
    if re.search(r"-\d+(\.[0-9a-f]+-delete)?$", name):
        return "a partition's directory"
    if name == "data":
        return "the data directory"
    return re.sub(r"^\d{20}", "", name).removesuffix(".tmp")


def cases_of(name: str, seed: int) -> tuple[list[Case], list[tuple[str, str]]]:
    """Every call of a life, in every way that it can fail; and what the calls are."""
    calls = lived(name, seed, None).calls
    cases = [
        Case(name, seed, number, error)
        for number, (operation, _) in enumerate(calls, 1)
        for error in ERRORS
        if error != "short" or operation == WRITE
    ]
    return cases, calls


def some_of_each_kind(cases: list[Case], calls: list[tuple[str, str]], wanted: int) -> list[Case]:
    """So many cases of a life; rare files and calls come as often as others, as far as they go."""
    dice = random.Random(f"slice {cases[0]}")
    kinds: dict[tuple[str, str], list[Case]] = {}
    for case in dice.sample(cases, len(cases)):
        operation, path = calls[case.call - 1]
        kinds.setdefault((operation, kind_of(path)), []).append(case)
    turns = zip_longest(*kinds.values())
    return [case for turn in turns for case in turn if case is not None][:wanted]


def one_case(case: Case) -> str | None:
    """The finding, if there is one."""
    try:
        lived(case.life, case.seed, (case.call, case.error))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        text = str(error) if isinstance(error, AssertionError) else repr(error)
        return f"{case.life}, seed {case.seed}, call {case.call}, {case.error}: {text}"
    return None


def prove(work: Work) -> Outcome:
    """Whole lives when points are asked for; the slice takes cases of each kind of each life."""
    wanted, tried = work.wanted(SLICE_POINTS), 0
    table: Counter[tuple[str, str, str]] = Counter()
    broken: Counter[tuple[str, str, str]] = Counter()
    findings: list[str] = []
    names, seeds = list(LIVES), count(work.seed)
    seed = work.seed
    while tried < wanted:
        seed = next(seeds)
        name = names[seed % len(names)]
        cases, calls = cases_of(name, seed)
        if work.points is None:
            cases = some_of_each_kind(cases, calls, wanted // len(names))
        for case, finding in zip(cases, spread(work, one_case, cases), strict=True):
            operation, path = calls[case.call - 1]
            where = kind_of(path), operation, case.error
            tried += 1
            table[where] += 1
            if finding is not None:
                broken[where] += 1
                findings.append(f"{finding} ({operation} {path})")
    return Outcome(
        tried,
        "failing calls",
        f"{work.seed}-{seed}",
        tuple(findings),
        note=f"{len({where[:2] for where in table})} kinds of file and call",
        matrix=(
            ("file", "call", *ERRORS, "findings"),
            *_rows(table, broken),
        ),
    )


def _rows(
    table: Counter[tuple[str, str, str]], broken: Counter[tuple[str, str, str]]
) -> list[tuple[str, ...]]:
    pairs = sorted({where[:2] for where in table})
    return [
        (
            *pair,
            *(str(table[(*pair, error)] or "") for error in ERRORS),
            str(sum(broken[(*pair, error)] for error in ERRORS) or ""),
        )
        for pair in pairs
    ]
