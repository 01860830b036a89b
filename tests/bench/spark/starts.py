"""What a person waits for: a command that is cold, and the decoder under all of it, alone."""

import subprocess
import time
from collections.abc import Mapping
from functools import partial
from statistics import median
from types import ModuleType

import pyarrow as pa

from pipeline import compiled, lockstep
from pipeline.decoder import Origin, decode
from pipeline.schemas import ALL_COLUMNS
from tests.bench.cell import Figure
from tests.bench.spark.records import CLEAN
from tests.bench.spark.scene import Job, Scene, seconds
from tests.bench.wire import BenchFailed
from tests.support.broker_process import HOROLOG

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
PIECE_BYTES = 16 << 20
"""How much the source decodes at a time."""
PIECES = 8


def cold(words: tuple[str, ...], scene: Scene) -> Mapping[str, float]:
    """A command of `horolog spark` from its start to its end."""
    began = time.perf_counter()
    asked = [str(HOROLOG), "spark", *words, "--log-dirs", str(scene.log_dir)]
    done = subprocess.run(asked, capture_output=True, check=False)
    taken = time.perf_counter() - began
    if done.returncode not in {0, 10} or not done.stdout:
        raise BenchFailed(done.stderr.decode()[-500:])
    return {"time": taken}


def decoded(engine: ModuleType, scene: Scene) -> Mapping[str, float]:
    """A piece of a segment in memory, checked and decoded on one core, all columns."""
    files = (scene.log_dir / f"{CLEAN}-0").glob("*.log")
    with max(files, key=lambda file: file.stat().st_size).open("rb") as segment:
        data = segment.read(PIECE_BYTES)
    schema = pa.schema([ALL_COLUMNS.field(name) for name in COLUMNS])
    seconds_taken = []
    for _ in range(PIECES):
        began, rows = time.perf_counter(), 0
        for batch in decode(data, Origin(CLEAN, 0), schema, engine=engine):
            rows += batch.num_rows
        seconds_taken.append(time.perf_counter() - began)
    return {"per record": median(seconds_taken) * 1e9 / rows}


def decoding(name: str, engine: ModuleType, under: float) -> Job:
    figure = Figure("per record", "ns", "lower", under=under)
    return Job(f"decode 16 MiB, {name}", (figure,), partial(decoded, engine))


QUERY = ("sql", "--topic", CLEAN, "--json", "-e", f"select offset from {CLEAN} limit 1")
JOBS = (
    decoding("compiled", compiled, 100),
    decoding("numpy", lockstep, 667),
    Job("pinned, cold", (seconds(under=0.3),), partial(cold, ("pinned",))),
    Job("sql to the first row, cold", (seconds(under=17),), partial(cold, QUERY)),
)
