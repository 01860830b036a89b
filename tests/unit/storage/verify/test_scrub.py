"""Rot in a closed segment is found, whatever bit it is; a sound log at work is not blamed."""

import random

import pytest

from storage.files.layout import PartitionName
from storage.log.log import Log
from storage.verify.report import Finding
from storage.verify.scrub import NEVER, ScrubFile, ScrubPlace, SegmentScrub, scrubbable
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, make_durable, open_log

FLIPS = 300


@pytest.fixture
def fs() -> SimFileSystem:
    return SimFileSystem()


@pytest.fixture
def log(fs: SimFileSystem) -> Log:
    """Some segments, the closed ones synced."""
    log = open_log(
        sim_env(fs=fs), segment_bytes=1500, index_interval_bytes=200, horolog_zone_bytes=4096
    )
    for step in range(40):
        append(log, 1000 + step, 1001 + step, value=b"value %d" % step)
    make_durable(log)
    return log


def found_in(log: Log) -> list[Finding]:
    found: list[Finding] = []
    for segment, following in scrubbable(log):
        scrub = SegmentScrub(log, segment, following)
        for _ in scrub.steps():
            continue
        found += scrub.findings
    return found


def flip(fs: SimFileSystem, path: str, at: int, bit: int) -> None:
    file = fs.open(path)
    file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1 << bit]))


def files_of(log: Log, fs: SimFileSystem, *suffixes: str) -> list[tuple[str, int]]:
    """Paths and sizes of the closed segments' files."""
    active = f"{log.snapshot.active.base_offset:020d}"
    return [
        (f"{log.files.path}/{entry.name}", entry.size_bytes)
        for entry in sorted(fs.list_dir(log.files.path))
        if entry.name.endswith(suffixes) and entry.size_bytes and not entry.name.startswith(active)
    ]


def test_a_sound_log_is_read_whole_and_left_alone(log: Log, fs: SimFileSystem) -> None:
    calls = fs.calls
    assert len(scrubbable(log)) >= 2
    assert found_in(log) == []
    assert fs.calls == calls, "something was written"


def test_every_flipped_bit_of_a_log_is_found(log: Log, fs: SimFileSystem) -> None:
    dice = random.Random(7)
    for _ in range(FLIPS):
        path, size = dice.choice(files_of(log, fs, ".log"))
        at, bit = dice.randrange(size), dice.randrange(8)
        flip(fs, path, at, bit)
        assert found_in(log), f"{path} byte {at} bit {bit}"
        flip(fs, path, at, bit)
    assert found_in(log) == []


def test_indexes_that_contradict_the_log_are_wrong(log: Log, fs: SimFileSystem) -> None:
    for path, size in files_of(log, fs, ".index", ".timeindex"):
        flip(fs, path, size - 1, 3)
        found = found_in(log)
        assert {each.severity for each in found} == {"wrong"}, path
        assert path.endswith(found[0].file)
        flip(fs, path, size - 1, 3)


def test_a_segment_that_was_replaced_or_removed_meanwhile_is_not_blamed(
    log: Log, fs: SimFileSystem
) -> None:
    (path, _), *_ = files_of(log, fs, ".log")
    flip(fs, path, 100, 1)
    segment, following = scrubbable(log)[0]
    scrub = SegmentScrub(log, segment, following)
    steps = scrub.steps()
    log.remove_segments(following)
    for _ in steps:
        continue
    assert scrub.findings == ()


def test_what_a_step_costs_is_bounded(fs: SimFileSystem) -> None:
    log = open_log(sim_env(fs=fs), segment_bytes=3 << 20)
    for step in range(8):
        append(log, 1000 + step, value=bytes(900_000))
    make_durable(log)
    segment, following = scrubbable(log)[0]
    sizes = list(SegmentScrub(log, segment, following).steps())
    assert len(sizes) >= 3
    assert max(sizes) <= 1 << 20


@pytest.mark.parametrize(
    "place",
    [
        ScrubPlace(5, PartitionName("orders", 3), is_over=False),
        ScrubPlace(5, None, is_over=True),
    ],
)
def test_how_far_it_came_is_remembered(fs: SimFileSystem, place: ScrubPlace) -> None:
    file = ScrubFile(fs, "/scrub")
    assert file.load() == NEVER
    file.save(place)
    assert ScrubFile(fs.after_crash(3), "/scrub").load() == place


@pytest.mark.parametrize(
    "text", [b"", b"0\n", b"0\n1\nx y z\n", b"\xff\x00", b"0\n0\n", b"9\n1\na 1 2\n"]
)
def test_nonsense_is_a_new_begin(fs: SimFileSystem, text: bytes) -> None:
    fs.write_atomically("/scrub", text)
    assert ScrubFile(fs, "/scrub").load() == NEVER
