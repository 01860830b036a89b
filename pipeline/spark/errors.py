"""Spark's errors as errors of ours: a line that says what to do, not a page of Java."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.errors import PipelineError

_MISSING = re.compile(r"(?:ModuleNotFoundError|ImportError): No module named '([\w.]+)'")
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\] (.*)")
_RAISED = re.compile(
    r"^(?!org\.|java\.|scala\.|py4j\.)[\w.]*(?:Error|Exception|Exit): .+", re.MULTILINE
)
_CLASS = re.compile(r"^(?:(?:org|java|scala|py4j)\.[\w.$]+: )+")
_PREFACE = "An error occurred while calling"


class SparkFailed(PipelineError):  # noqa: N818 - what happened
    """Spark did not start, or gave a job up."""


class ExecutorLacks(PipelineError):  # noqa: N818 - what happened
    """The Python of Spark's workers has not what our code needs."""


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turns errors of PySpark into SparkFailed or ExecutorLacks."""
    from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JNetworkError, ConnectionError) as error:
        raise SparkFailed(
            "Spark: its Java is gone (killed, or out of memory): run again"
        ) from error
    except (PySparkException, Py4JError) as error:
        raise named(str(error)) from error


def named(text: str) -> PipelineError:
    """The error of ours for what Spark says."""
    if missing := _MISSING.search(text):
        return ExecutorLacks(
            f"the Python of Spark's workers has no package {missing[1]!r}: install horolog[spark] "
            "on every machine of the cluster, or send an environment along (docs/pipeline.md, "
            '"On a cluster")'
        )
    if other := _OTHER_PYTHON.search(text):
        return ExecutorLacks(f"{other[1]} Set PYSPARK_PYTHON to an interpreter of that version.")
    return SparkFailed(f"Spark: {in_a_line(text)}")


def in_a_line(text: str) -> str:
    """The error that Python raised in a worker, if any; else the first line of Spark's."""
    if raised := _RAISED.findall(text):
        return str(raised[-1])
    lines = (line.strip().removeprefix(": ") for line in text.splitlines())
    said = (line for line in lines if line and not line.startswith(_PREFACE))
    return _CLASS.sub("", next(said, "it gave no reason"))
