"""Logs that tests build in a line: on the simulated disk or a real one, opened and opened again."""

from collections.abc import Iterable, Sequence
from typing import Any

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.record import Record, read_records
from protocol.records.scan import scan_batches
from storage.env import Env, parent_of
from storage.files.partition_files import FilePool, PartitionFiles
from storage.log.log import AppendResult, Log
from storage.recovery.loading import LoadHints, load_log
from storage.segment.trusted_indexes import TrustedIndexes
from tests.support.disk.simenv import sim_env

LOG_PATH = "/data/t-0"
CLEAN = LoadHints(is_clean=True)
UNCLEAN = LoadHints(is_clean=False)
NO_BOUNDS = {"message_timestamp_after_max_ms": 2**63 - 1}


def open_log(
    env: Env | None = None, known: LoadHints = UNCLEAN, path: str = LOG_PATH, **settings: Any
) -> Log:
    """The log in `path`, made if absent; every time is in bounds unless `settings` say so."""
    env = env or sim_env()
    env.fs.make_dir(path)
    for above in (parent_of(parent_of(path)), parent_of(path)):
        env.fs.sync_dir(above)
    config = TopicConfig(**{**NO_BOUNDS, **settings})
    files = PartitionFiles(env.fs, FilePool(env.fs), path)
    loaded = load_log(files, config, env, known)
    return Log("t", 0, None, loaded, config, env, TrustedIndexes(), lambda: None)


def reopened(log: Log, env: Env, known: LoadHints = CLEAN) -> Log:
    """The log closed and opened again with the same settings."""
    log.close()
    settings = {name: getattr(log.config, name) for name in log.config.__slots__}
    return open_log(env, known, log.files.path, **settings)


def append(log: Log, *times: int, acks_all: bool = False, **batch: Any) -> AppendResult:
    """One batch with a record for each time (ms); values are `test`, keys null."""
    value = batch.pop("value", b"test")
    key = batch.pop("key", None)
    return append_bytes(
        log, build_batch([(at, key, value) for at in times], **batch), acks_all=acks_all
    )


def append_bytes(log: Log, data: bytearray | bytes, *, acks_all: bool = False) -> AppendResult:
    """One batch as it is."""
    return log.append(memoryview(bytearray(data)), acks_all=acks_all, leader_epoch=0)


def make_durable(log: Log) -> None:
    """Does the work of the fsync thread and the loop together."""
    log.mark_durable(log.sync())
    log.vouch()


def records_of(log: Log, offset: int | None = None) -> list[Record]:
    """All records from `offset` on that fetches see, one fetch after the other."""
    snapshot = log.snapshot
    at = snapshot.log_start_offset if offset is None else offset
    found: list[Record] = []
    while at < snapshot.high_watermark:
        data = log.read(at, 1 << 20, up_to=snapshot.high_watermark, min_one_batch=True).read()
        scan = scan_batches(data)
        assert scan.batches, f"nothing at {at}"
        for row in scan.batches:
            records = read_records(memoryview(data)[row[0] : row[0] + row[5]])
            found += [record for record in records if record.offset >= at]
        at = scan.batches[-1][2] + 1
    return found


def offsets_of(records: Iterable[Record]) -> list[int]:
    """Their offsets."""
    return [record.offset for record in records]


def first_from(
    records: Sequence[tuple[int, int]], timestamp: int, start: int = 0
) -> tuple[int, int] | None:
    """The model of a search by time: the first (timestamp, offset) that will do, by full scan."""
    for at, offset in records:
        if at >= timestamp and offset >= start:
            return at, offset
    return None
