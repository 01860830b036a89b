"""What a person waits for: a command that is cold, and the decoder under all of it, alone."""

import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import partial
from statistics import median
from types import ModuleType

import pyarrow as pa

from pipeline import compiled, lockstep
from pipeline.decoder import Origin, decode, tabulate
from pipeline.schemas import ALL_COLUMNS
from tests.bench.cell import Figure
from tests.bench.spark.records import CLEAN
from tests.bench.spark.scene import Job, Scene, seconds
from tests.bench.wire import BenchFailed
from tests.support.broker_process import HOROLOG

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
PART_BYTES = 64 << 20
TIMES = 8


def cold(words: tuple[str, ...], scene: Scene) -> Mapping[str, float]:
    """A command of `horolog spark` from its start to its end."""
    began = time.perf_counter()
    asked = [str(HOROLOG), "spark", *words, "--log-dirs", str(scene.log_dir)]
    done = subprocess.run(asked, capture_output=True, check=False)
    taken = time.perf_counter() - began
    if done.returncode not in {0, 10} or not done.stdout:
        raise BenchFailed(done.stderr.decode()[-500:])
    return {"time": taken}


def decoded(engine: ModuleType, piece_bytes: int, scene: Scene) -> Mapping[str, float]:
    """A part of a segment in memory, piece by piece: checked and decoded on one core."""
    schema = pa.schema([ALL_COLUMNS.field(name) for name in COLUMNS])
    pieces = list(pieces_of(largest_segment(scene), piece_bytes))
    taken = []
    for _ in range(TIMES):
        began, rows = time.perf_counter(), 0
        for piece in pieces:
            for batch in decode(piece, Origin(CLEAN, 0), schema, engine=engine):
                rows += batch.num_rows
        taken.append(time.perf_counter() - began)
    return {"per record": median(taken) * 1e9 / rows}


def largest_segment(scene: Scene) -> memoryview:
    files = (scene.log_dir / f"{CLEAN}-0").glob("*.log")
    with max(files, key=lambda file: file.stat().st_size).open("rb") as segment:
        return memoryview(segment.read(PART_BYTES))


def pieces_of(data: memoryview, piece_bytes: int) -> Iterator[memoryview]:
    """Whole batches, about so many bytes of them at a time."""
    while end := tabulate(data[:piece_bytes], Origin(CLEAN, 0)).end:
        yield data[:end]
        data = data[end:]


def decoding(name: str, engine: ModuleType, piece_mib: int, under: float) -> Job:
    """Pieces are as large as the source has them for that decoder."""
    figure = Figure("per record", "ns", "lower", under=under)
    return Job(f"decode, {name}", (figure,), partial(decoded, engine, piece_mib << 20))


QUERY = ("sql", "--topic", CLEAN, "--json", "-e", f"select offset from {CLEAN} limit 1")
JOBS = (
    decoding("compiled", compiled, 4, 100),
    decoding("numpy", lockstep, 16, 667),
    Job("pinned, cold", (seconds(under=0.3),), partial(cold, ("pinned",))),
    Job("sql to the first row, cold", (seconds(under=17),), partial(cold, QUERY)),
)
