"""Spark's Kafka connector and what it needs, from Maven, kept in `.cache/spark-kafka`."""

import fcntl
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "spark-kafka"
CONNECTOR_VERSION = "4.2.0"
COORDINATES = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR_VERSION}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.0",
)
FETCH_SECONDS = 300


def available() -> bool:
    """True when the jars are here, or can be fetched."""
    return bool(shutil.which("mvn")) or all(path.exists() for path in _paths())


def connector_jars() -> list[str]:
    """The paths of the jars; an unhappy download fails with all it said."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        for path, coordinates in zip(_paths(), COORDINATES, strict=True):
            if not path.exists():
                _fetch(coordinates)
    return [str(path) for path in _paths()]


def _paths() -> list[Path]:
    return [CACHE / "{1}-{2}.jar".format(*each.split(":")) for each in COORDINATES]


def _fetch(coordinates: str) -> None:
    done = subprocess.run(
        ["mvn", "--batch-mode", "--quiet", "dependency:copy", f"-Dartifact={coordinates}",
         f"-DoutputDirectory={CACHE}"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=FETCH_SECONDS,
    )  # fmt: skip
    assert done.returncode == 0, f"mvn {coordinates}: {done.stdout}\n{done.stderr}"
