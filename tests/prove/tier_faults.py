"""A real broker whose tier fails on the wire, or that dies there: nothing is lost or served twice.

A point is a life of `tests.support.tier.tier_story` with a real store behind a proxy. Each kind of
call fails once in each way; at each the broker is killed, before the store has it, after the store
has done it, or so that the store does it when the next process is at work. Then all that was
acknowledged is read back, and the store has what manifests name and nothing else.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.prove import Outcome, Work, quietly, shown, spread
from tests.support.tier.s3_server import S3Server, is_seaweedfs_published, seaweedfs
from tests.support.tier.story_points import Point, all_points, calls_of_a_life, live_with

SLICE_POINTS = 6
AT_ONCE = 16
"""Points that share a server: what is removed from one stays on its disk for long."""
TOLD_LINES = 12


class Numbered(NamedTuple):
    """A point, and its number."""

    number: int
    point: Point


class Seen(NamedTuple):
    """Results of some points."""

    played: int = 0
    """Points that were met: a life may go without a call that another one had."""
    seconds: float = 0.0
    findings: tuple[str, ...] = ()


def some_points(numbered: Sequence[Numbered]) -> Seen:
    """Lives beside one server."""
    played, seconds, findings = 0, 0.0, list[str]()
    with quietly(), TemporaryDirectory() as folder, seaweedfs() as server:
        for each in numbered:
            found = _one(server, Path(folder) / f"{each.number}", each)
            if isinstance(found, str):
                findings.append(found)
            else:
                played += found[0]
                seconds += found[1]
    return Seen(played, seconds, tuple(findings))


def _one(server: S3Server, folder: Path, numbered: Numbered) -> tuple[int, float] | str:
    try:
        lived = live_with(server, folder / "data", numbered.point)
    except Exception as error:  # noqa: BLE001 - whatever is let out was found
        return _told(folder, numbered, error)
    finally:
        rmtree(folder, ignore_errors=True)
    return int(lived.played > 0), lived.seconds


def _told(folder: Path, numbered: Numbered, error: Exception) -> str:
    """The point, what was found, and the last lines of the broker's log that warn."""
    log = folder / "data.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    warnings = [line for line in lines if re.search("level=(warning|error)|Traceback", line)]
    told = f"{numbered.point}: {type(error).__name__}: {error}"
    replay = f"(scripts/prove tier_faults --seed {numbered.number} --points 1)"
    return "\n  ".join((f"{told} {replay}", *warnings[-TOLD_LINES:]))


def points(_: object) -> list[Point]:
    """All of them, as a life without faults has its calls.

    In a worker's process: the threads of its clients would be missing in those forked after it.
    """
    with quietly(), TemporaryDirectory() as folder, seaweedfs() as server:
        return all_points(calls_of_a_life(server, Path(folder) / "plain" / "data"))


def prove(work: Work) -> Outcome:
    """So many points from number `seed` on; without a number, a few of all."""
    if not is_seaweedfs_published():
        return Outcome(0, "points", skipped="the package registry has no SeaweedFS for here")
    [found_points] = spread(work, points, [None])
    everything = [Numbered(*each) for each in enumerate(found_points)]
    chosen = list(_chosen(work, everything))
    parts = [chosen[at : at + AT_ONCE] for at in range(0, len(chosen), AT_ONCE)]
    found = list(shown(spread(work, some_points, parts)))
    played, seconds = sum(each.played for each in found), sum(each.seconds for each in found)
    kinds = Counter(type(each.point).__name__.lower() for each in chosen)
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return Outcome(
        len(chosen),
        "points",
        f"{chosen[0].number}-{chosen[-1].number}",
        tuple(finding for each in found for finding in each.findings),
        note=f"of {len(everything)}: {counts}; {played} met, {seconds / len(chosen):.1f} s each",
    )


def _chosen(work: Work, everything: Sequence[Numbered]) -> Iterator[Numbered]:
    assert work.seed < len(everything), f"there are {len(everything)} points"
    if work.points is not None:
        yield from everything[work.seed : work.seed + work.points]
        return
    for index in range(SLICE_POINTS):
        yield everything[(work.seed + index * len(everything) // SLICE_POINTS) % len(everything)]
