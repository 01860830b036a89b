"""Every bit of the files beside the logs flips once, with the broker stopped and with it running.

After a flip a start either refuses, by name, or serves what the ledger says: readers of committed
data, searches by time, offsets, groups, settings, quotas, ids. The matrix tells for each kind of
file how many flips did no harm, were refused, or were believed. What a running
broker neither reads nor writes it cannot notice: such a flip is made when it has stopped, in what
one run left to all of them.
"""

import asyncio
import gc
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, NamedTuple
from unittest.mock import patch

from config.errors import ConfigError
from storage.errors import StorageError
from storage.log.log import Log
from tests.prove import Outcome, Work, quietly, spread
from tests.prove.failing_disks import kind_of
from tests.support.disk.simdisk import SimFile, SimFileSystem
from tests.support.worlds.broker_judge import judge
from tests.support.worlds.broker_lives import live
from tests.support.worlds.broker_world import BrokerWorld
from tests.support.worlds.faulty_life import FaultyLife

SLICE_POINTS = 250
STEPS = 4
UNCHECKED = {"leader-epoch-checkpoint", "meta.properties", "partition.metadata"}
"""Kafka's text without a checksum, tried when points are asked for. All other kinds carry one, or
are compared with the log: none may be believed."""

USES = ("read_at", "read_into", "read_into_if_cached", "write_at", "write_parts_at", "truncate")
HARMLESS, REFUSED, BELIEVED = "harmless", "refused", "believed"


class Flip(NamedTuple):
    """One bit, by number from the file's begin."""

    seed: int
    path: str
    bit: int
    running: bool


class Home(NamedTuple):
    """A directory that a clean stop left, and what it holds."""

    life: FaultyLife
    disk: SimFileSystem
    later: SimFileSystem
    """The same after a start, the judge's requests and a stop."""
    used: frozenset[str]
    """Files that were read or written meanwhile, after the start."""
    kept: frozenset[str]
    """Files that `later` still has, and did not replace."""


@lru_cache(maxsize=1)
def home(seed: int) -> Home:
    """A small directory with something in each kind of file."""

    async def lived() -> Home:
        life = FaultyLife(seed, None)
        await live(life, "transactions", STEPS)
        for log in life.world.logs():
            log.roll()
        topic = life.ledger.topics["t"].latest
        assert topic is not None
        await life.transact([topic], ends="abort")
        await life.alter(topic, "index.interval.bytes", "99")
        await life.alter_broker("log.cleaner.backoff.ms", "77")
        await life.set_quota("u", 1234.0)
        while not any(map(_begins_inside_a_segment, life.world.logs())):
            await life.write(topic, acks=-1)
            await life.delete_records(topic)
        await life.commit_offset("h", topic, 5)
        life.world.broker.logs.checkpoint()
        assert await life.world.stop()
        await super(FaultyLife, life)._all_is_durable()
        disk = life.world.fs.after_kill()
        return Home(life, disk, *await _run(life, disk.after_kill()))

    with quietly():
        found = asyncio.run(lived())
    gc.freeze()
    return found


def _begins_inside_a_segment(log: Log) -> bool:
    """So that the checkpoint of starts says something of it."""
    return log.snapshot.log_start_offset > log.snapshot.segments[0].base_offset


async def _run(
    life: FaultyLife, disk: SimFileSystem
) -> tuple[SimFileSystem, frozenset[str], frozenset[str]]:
    """What a broker without any flip uses while it runs, and what it leaves."""
    world = await life.world.reborn(disk)
    paths = [path for path, _ in files_of(disk)]
    before = {path: disk._find(path) for path in paths}
    with watched() as used:
        await judge(world, life.ledger, random.Random(0))
        await world.stop()
    kept = {path for path in paths if disk.exists(path) and disk._find(path) is before[path]}
    return disk, frozenset(used), frozenset(kept)


@contextmanager
def watched() -> Iterator[set[str]]:
    """The paths of files that are read or written in place."""
    used: set[str] = set()

    def noting(method: Callable[..., Any]) -> Callable[..., Any]:
        def noted(file: SimFile, *args: Any) -> Any:
            used.add(file.path)
            return method(file, *args)

        return noted

    with ExitStack() as stack:
        for name in USES:
            stack.enter_context(patch.object(SimFile, name, noting(getattr(SimFile, name))))
        yield used


def files_of(fs: SimFileSystem, path: str = "/data") -> Iterator[tuple[str, int]]:
    """Paths and sizes of all files but the logs themselves and the lock."""
    for entry in sorted(fs.list_dir(path)):
        name = f"{path}/{entry.name}"
        if entry.is_dir:
            yield from files_of(fs, name)
        elif entry.size_bytes and not entry.name.endswith(".log"):
            yield name, entry.size_bytes


def flip(fs: SimFileSystem, path: str, bit: int) -> None:
    """Flip it, for readers and on the disk."""
    file = fs.open(path)
    at = bit // 8
    file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1 << bit % 8]))
    file.close()


async def _tried(each: Flip) -> str:
    life, disk, later, used, kept = home(each.seed)
    is_used = each.path in used
    if each.running and not is_used and each.path not in kept:
        return HARMLESS  # replaced without a look at it
    disk = (later if each.running and not is_used else disk).after_kill()
    world: BrokerWorld | None = None
    if each.running and is_used:
        world = await life.world.reborn(disk)
        if not disk.exists(each.path):
            return HARMLESS
        flip(disk, each.path, each.bit)
        await judge(world, life.ledger, random.Random(each.bit))
        await world.stop()
    else:
        flip(disk, each.path, each.bit)
    try:
        world = await life.world.reborn(disk)
    except (StorageError, ConfigError):
        return REFUSED
    await judge(world, life.ledger, random.Random(each.bit))
    world.ends()
    return HARMLESS


def one_flip(each: Flip) -> tuple[str, str | None]:
    """What came of it, and the finding if there is one."""
    try:
        with quietly():
            return asyncio.run(_tried(each)), None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        text = str(error) if isinstance(error, AssertionError) else repr(error)
        when = "running" if each.running else "stopped"
        return BELIEVED, f"seed {each.seed}, {when}, {each.path} bit {each.bit}: {text}"


def flips(seed: int, *, checked_only: bool) -> list[Flip]:
    """All bits of the directory of one seed."""
    return [
        Flip(seed, path, bit, running)
        for path, size in files_of(home(seed).disk)
        if kind_of(path) not in UNCHECKED or not checked_only
        for bit in range(8 * size)
        for running in (False, True)
    ]


def prove(work: Work) -> Outcome:
    """All bits of one directory, or as many as are wanted, evenly spread over it."""
    wanted = work.wanted(SLICE_POINTS)
    everything = flips(work.seed, checked_only=work.points is None)
    stride = max(1, len(everything) // wanted)
    chosen = everything[:: stride + (stride % 2 == 0)]  # odd: stopped and running in turn
    tally: Counter[tuple[str, str]] = Counter()
    findings: list[str] = []
    for each, (fate, finding) in zip(chosen, spread(work, one_flip, chosen), strict=True):
        tally[kind_of(each.path), fate] += 1
        if finding is not None:
            findings.append(finding)
    fates = (HARMLESS, REFUSED, BELIEVED)
    kinds = sorted({kind for kind, _ in tally})
    return Outcome(
        len(chosen),
        "flipped bits",
        str(work.seed),
        tuple(findings),
        note=f"of {len(everything)}; {sum(tally[kind, REFUSED] for kind in kinds)} refused",
        matrix=(
            ("file", *fates),
            *((kind, *(str(tally[kind, fate] or "") for fate in fates)) for kind in kinds),
        ),
    )
