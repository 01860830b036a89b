"""Partitions on a real disk for the pipeline's tests, written by the broker's own log."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.decode.schemas import ALL_COLUMNS, RECORDS
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from pipeline.sources.reading import read_task
from protocol.records.compression import Codec
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import HIGH_WATERMARKS_FILE
from storage.log.log import Log
from storage.posix import PosixFileSystem, real_env
from tests.support.records.logs import append, open_log

HOUR_MS = 3_600_000
NOON_MS = 1_700_000_000_000
DIRTY_MS = 4_000_000_000_000
SMALL = {"segment_bytes": 20_000, "index_interval_bytes": 200, "horolog_zone_bytes": 4096}


def directory_log(folder: Path, partition: int = 0, **settings: Any) -> Log:
    """The log of partition `t-<partition>` in the data directory `folder`."""
    return open_log(real_env(), path=str(folder / f"t-{partition}"), **{**SMALL, **settings})


def disordered(
    log: Log, seed: int, batches: int = 80, *, dirty: bool = False
) -> list[tuple[int, int]]:
    """Fill the log with batches of all codecs whose times jump about; offsets and times."""
    dice = random.Random(seed)
    known = []
    for number in range(batches):
        times = [
            NOON_MS + number * 60_000 + dice.randint(-600_000, 600_000)
            for _ in range(dice.randint(1, 9))
        ]
        if dirty and dice.random() < 0.05:
            times[0] = dice.choice([DIRTY_MS, 5, -1])
        done = append(
            log, *times, codec=dice.choice(list(Codec)), value=dice.randbytes(dice.randint(0, 1500))
        )
        known += [(done.base_offset + at, time) for at, time in enumerate(times)]
    return known


def checkpoint(folder: Path, **watermarks: int) -> None:
    """Write the high watermarks as a live broker does: `t_0=17`."""
    offsets = {tuple(name.rsplit("_", 1)): at for name, at in watermarks.items()}
    OffsetCheckpoint(PosixFileSystem(), str(folder / HIGH_WATERMARKS_FILE)).save(
        {(topic, int(index)): at for (topic, index), at in offsets.items()}
    )


def read_all(
    options: dict[str, str], columns: Sequence[str] = RECORDS.names
) -> list[dict[str, Any]]:
    """Result of a batch read, without Spark: rows in the order of the log."""
    schema = pa.schema([field for field in ALL_COLUMNS if field.name in columns])
    rows: list[dict[str, Any]] = []
    for task in plan_tasks(parse(options)):
        for batch in read_task(task, schema):
            rows += batch.to_pylist()
    return rows
