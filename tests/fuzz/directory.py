"""A small data directory on a simulated disk, one file of which is whatever the fuzzer says."""

import functools
from typing import Any
from uuid import UUID

from config.topic import TopicConfig
from protocol.errors import KafkaError
from protocol.records.builder import build_batch
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import NO_BOUNDS, make_durable

LOG_DIR = "/data"
NOW = 1_700_000_000_000
SETTINGS: dict[str, Any] = {
    **NO_BOUNDS, "segment_bytes": 300, "index_interval_bytes": 60, "horolog_zone_bytes": 100,
}  # fmt: skip
CONFIG = TopicConfig(**SETTINGS)
NEVER_READ = {".lock", "horolog-ballast"}


def started(fs: SimFileSystem) -> LogManager:
    """A log manager on that disk. StorageError when it refuses the directory."""
    manager = LogManager(Env(SimClock(NOW), fs, SeededRng(1)), LOG_DIR, lambda _: CONFIG)
    manager.open_directory("cluster", 1)
    manager.load()
    return manager


@functools.cache
def made(*, cleanly: bool) -> tuple[SimFileSystem, tuple[str, ...]]:
    """A directory with a few segments and an open producer, and the paths of its files."""
    fs = SimFileSystem()
    manager = started(fs)
    log = manager.create_log("t", 0, UUID(int=7), CONFIG)
    for number in range(8):
        batch = build_batch(
            [(NOW + number, b"k", b"v" * 40)], producer_id=9, producer_epoch=0, base_sequence=number
        )
        log.append(memoryview(batch), acks_all=True, leader_epoch=0)
    make_durable(log)
    log.delete_records(1)
    manager.checkpoint()
    if cleanly:
        assert manager.close()
    folders = [LOG_DIR, f"{LOG_DIR}/t-0"]
    paths = sorted(
        f"{folder}/{entry.name}"
        for folder in folders
        for entry in fs.list_dir(folder)
        if not entry.is_dir and entry.name not in NEVER_READ
    )
    return fs, tuple(paths)


def start_on(data: bytes) -> None:
    """Start on the directory with one file replaced: the first byte says which, and how it was
    left. What the start gives can be read to its end, or is refused by a named error.
    """
    if not data:
        return
    whole, paths = made(cleanly=bool(data[0] & 1))
    fs = whole.after_kill()
    file = fs.open(paths[(data[0] >> 1) % len(paths)])
    file.truncate(0)
    file.write_at(0, data[1:])
    file.close()
    for log in started(fs).logs.values():
        _read_all(log)


def _read_all(log: Log) -> None:
    snapshot = log.snapshot
    offset = snapshot.log_start_offset
    assert 0 <= offset <= snapshot.log_end_offset
    try:
        log.search.first_at_or_after(NOW, below=snapshot.log_end_offset)
        log.search.first_with_largest()
        log.search.aborted(offset, snapshot.log_end_offset)
        log.read(offset, 1 << 20, up_to=snapshot.log_end_offset, min_one_batch=True)
    except KafkaError:
        return  # a damaged log says so
