"""The launcher: a Spark session that is set up as our sources, jobs and tests expect.

By default Spark runs embedded, on every core of this machine. Whatever the environment or a
configuration folder of Spark's says is left alone, but for what wrong answers come from: workers
run this interpreter, and times are shown in UTC.
"""

import os
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pipeline.errors import NoSpark
from pipeline.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
ROOT = Path(__file__).resolve().parents[1]
FOUND = Path(__file__).resolve().parent / "found"
"""The folder from which Spark finds our source without registration, on the Python path."""

SHORT_COMMAND = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java that halve the start of a short job, and slow down a long one."""

SETTINGS: Mapping[str, str] = MappingProxyType({
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
})  # fmt: skip


def open_session(
    name: str = "horolog",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    is_short: bool = False,
) -> "SparkSession":
    """The session of this process, made if there is none; our source is registered in it.

    `master` None: what Spark's own configuration says, else `LOCAL`. `settings` win over ours.
    NoSpark, NoJava.
    """
    prepare_environment()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    wanted = {**SETTINGS, **_local_settings(), **_executor_settings(), **(settings or {})}
    if is_short:
        wanted.setdefault("spark.driver.extraJavaOptions", SHORT_COMMAND)
    for key, value in wanted.items():
        builder = builder.config(key, value)
    builder = builder.master(master or os.environ.get("SPARK_MASTER") or LOCAL)
    session = builder.getOrCreate()
    register(session)
    return session


def prepare_environment() -> None:
    """Set what Spark's processes inherit: Java, the interpreter, where our code lies."""
    if find_spec("pyspark") is None:
        raise NoSpark("PySpark is not installed: pip install 'horolog[spark]'")
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    missing = [path for path in (str(ROOT), str(FOUND)) if path not in known]
    os.environ["PYTHONPATH"] = os.pathsep.join([*missing, *filter(None, known)])


def register(session: "SparkSession") -> None:
    """Make `format("horolog")` known to a session that somebody else has made."""
    from pipeline.sources.spark import HorologSource

    session.dataSource.register(HorologSource)


def _local_settings() -> dict[str, str]:
    """Folders that Spark would otherwise leave in the directory that a command is run from."""
    scratch = tempfile.gettempdir()
    return {"spark.sql.warehouse.dir": f"{scratch}/horolog-spark-warehouse"}


def _executor_settings() -> dict[str, str]:
    """Executors of a cluster find our code where it lies here, or where they have it installed."""
    return {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}
