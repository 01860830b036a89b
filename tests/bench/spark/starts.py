"""What a person waits for: a command that is cold, and the decoder under all of it, alone."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import ModuleType

import pyarrow as pa

from pipeline.decode import compiled
from pipeline.decode import numpy_decoder as lockstep
from pipeline.decode.decoder import BatchOrigin, decode, tabulate
from pipeline.decode.schemas import ALL_COLUMNS
from pipeline.engine.worker_memory import worker_memory
from tests.bench.cell import Figure
from tests.bench.spark.records import CLEAN
from tests.bench.spark.scene import Job, Scene, seconds
from tests.bench.wire import BenchFailed
from tests.support.worlds.broker_process import HOROLOG, own_environment

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
PART_BYTES = 64 << 20
TIMES = 8


def cold(words: tuple[str, ...], scene: Scene) -> Mapping[str, float]:
    """A command of `horolog spark` from its start to its end."""
    began = time.perf_counter()
    asked = [str(HOROLOG), "spark", *words, "--log-dirs", str(scene.log_dir)]
    done = subprocess.run(asked, capture_output=True, check=False, env=own_environment())
    taken = time.perf_counter() - began
    if done.returncode not in {0, 10} or not done.stdout:
        raise BenchFailed(done.stderr.decode()[-500:])
    return {"time": taken}


def decoded(engine: str, piece_bytes: int, scene: Scene) -> Mapping[str, float]:
    """A part of the largest segment, by one worker as jobs have it."""
    files = (scene.log_dir / f"{CLEAN}-0").glob("*.log")
    largest = max(files, key=lambda file: file.stat().st_size)
    with worker_memory(), ProcessPoolExecutor(1, get_context("spawn")) as worker:
        taken = worker.submit(nanoseconds, engine, piece_bytes, largest).result()
    return {"per record": taken}


def nanoseconds(engine: str, piece_bytes: int, segment: Path) -> float:
    """What a record takes to be checked and decoded on one core, of pieces that were just read."""
    schema = pa.schema([ALL_COLUMNS.field(name) for name in COLUMNS])
    decoder = import_module(engine)
    with segment.open("rb") as file:
        pieces = list(pieces_of(memoryview(file.read(PART_BYTES)), piece_bytes))
    buffer = memoryview(bytearray(piece_bytes))
    taken = []
    for _ in range(TIMES):
        seconds_taken, rows = 0.0, 0
        for piece in pieces:
            just_read = buffer[: len(piece)]
            just_read[:] = piece
            began = time.perf_counter()
            for batch in decode(just_read, BatchOrigin(CLEAN, 0), schema, engine=decoder):
                rows += batch.num_rows
            seconds_taken += time.perf_counter() - began
        taken.append(seconds_taken * 1e9 / rows)
    return median(taken)


def pieces_of(data: memoryview, piece_bytes: int) -> Iterator[memoryview]:
    """Whole batches, about so many bytes of them at a time."""
    while end := tabulate(data[:piece_bytes], BatchOrigin(CLEAN, 0)).end:
        yield data[:end]
        data = data[end:]


def decoding(engine: ModuleType, piece_mib: int, under: float) -> Job:
    """Pieces are as large as the source has them for that decoder."""
    figure = Figure("per record", "ns", "lower", under=under)
    work = partial(decoded, engine.__name__, piece_mib << 20)
    return Job(f"decode, {engine.__name__.rpartition('.')[2]}", (figure,), work)


QUERY = ("sql", "--topic", CLEAN, "--json", "-e", f"select offset from {CLEAN} limit 1")
JOBS = (
    decoding(compiled, 4, 100),
    decoding(lockstep, 16, 667),
    Job("pinned, cold", (seconds(under=0.3),), partial(cold, ("pinned",))),
    Job("sql to the first row, cold", (seconds(under=17),), partial(cold, QUERY)),
)
