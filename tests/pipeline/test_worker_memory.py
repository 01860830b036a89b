"""Workers begin with the memory settings of ours, unless the user has his own; nobody else does."""

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipeline.cli.run import run_all
from pipeline.engine.engine import Engine
from pipeline.engine.worker_memory import WORKER_MEMORY, worker_memory
from pipeline.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_only_what_begins_meanwhile_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    before = dict(os.environ)
    with worker_memory():
        assert os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "jemalloc", "the user's own"
        assert os.environ["MALLOC_TRIM_THRESHOLD_"] == WORKER_MEMORY["MALLOC_TRIM_THRESHOLD_"]
    assert dict(os.environ) == before


def test_workers_of_a_command_have_them() -> None:
    """Arrow's is chosen before it is loaded, so this has to be a process of its own."""
    script = """
import click
from pipeline.cli.main import Jobs
with click.Context(Jobs()) as context:
    Jobs().get_command(context, "archive")
import pyarrow
from pipeline.engine.native import NativeEngine
from tests.pipeline.test_worker_memory import allocators
with NativeEngine(2) as engine:
    print(*allocators(engine))
"""
    free = {name: value for name, value in os.environ.items() if name not in WORKER_MEMORY}
    for own, expected in ({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"}, "jemalloc"):
        done = subprocess.run(
            [sys.executable, "-c", script], env=free | own, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        assert done.stdout.split() == [expected]


def test_tasks_of_spark_have_them(spark: "SparkSession") -> None:
    before = os.environ.get("ARROW_DEFAULT_MEMORY_POOL")
    assert allocators(SparkEngine(lambda: spark)) == {"system"}
    assert os.environ.get("ARROW_DEFAULT_MEMORY_POOL") == before


def allocators(engine: Engine) -> set[str]:
    return set(run_all(engine, allocator, range(4), "items"))


def allocator(_: int) -> str:
    return str(pa.default_memory_pool().backend_name)
