"""The launcher: a Spark session that is set up as our sources, jobs and tests expect.

By default Spark runs embedded, on every core of this machine. Whatever the environment or a
configuration folder of Spark's says is left alone, but for what wrong answers come from: times are
shown in UTC, and workers run this interpreter unless PYSPARK_PYTHON names another. On any other
master the executors are sent our code (`pipeline.spark.shipped`).
"""

import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from config.properties import read_properties
from pipeline.engine.worker_memory import WORKER_MEMORY, worker_memory
from pipeline.errors import BadOption, NoSpark
from pipeline.spark.class_data import class_data_options
from pipeline.spark.errors import spark_errors
from pipeline.spark.java import java_home, spark_home
from pipeline.spark.shipped import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "pipeline" / "found"
"""The folder from which Spark finds our source without registration, on the Python path."""

LOGGING = Path(__file__).resolve().parent / "log4j2.properties"

SHORT_COMMAND = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java that halve the start of a short job, and slow down a long one."""

DEFAULTS: Mapping[str, str] = MappingProxyType({
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.redaction.options.regex": "(?i)url|kafka[.](sasl|ssl)[.]",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass":
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
})  # fmt: skip
"""Defaults where Spark's own configuration has no value."""

NEEDED: Mapping[str, str] = MappingProxyType({
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.python.filterPushdown.enabled": "true",
})  # fmt: skip


def open_session(
    name: str = "horolog",
    *,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    is_short: bool = False,
) -> "SparkSession":
    """The session of this process, made if there is none; our source is registered in it.

    `master` None: what Spark's own configuration says, else every core of this machine. `settings`
    win over ours. NoSpark, NoJava, SparkFailed.
    """
    prepare_environment()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in session_settings(settings or {}, is_short=is_short).items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    with spark_errors(), worker_memory():
        session = builder.getOrCreate()
    if is_short:
        _hush(session)
    register(session)
    return session


def prepare_environment() -> None:
    """Set what Spark's processes inherit: Java, the interpreter, the path of our code. Raises
    NoSpark.
    """
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
    """Make `format("horolog")` known to a session of the user's, and to its executors."""
    from pipeline.spark.source import HorologSource

    ship(session)
    session.dataSource.register(HorologSource)


def configured() -> dict[str, str]:
    """Settings of `spark-defaults.conf`. BadOption when it cannot be read."""
    folder = os.environ.get("SPARK_CONF_DIR")
    if folder is None:
        folder = f"{spark_home()}/conf"
    place = Path(folder) / "spark-defaults.conf"
    try:
        text = place.read_text(encoding="utf-8")
        return {key: value for key, value, _ in read_properties(text)}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadOption(f"{place}: {error}") from error


def _hush(session: "SparkSession") -> None:
    """An error comes to the one who asked: not before that as a page of Java, too."""
    from pyspark.logger import PySparkLogger

    PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    jvm = session.sparkContext._jvm  # noqa: SLF001 - PySpark has no other way
    assert jvm is not None
    log4j = jvm.org.apache.logging.log4j
    for each in ("executor.Executor", "scheduler.TaskSetManager"):
        log4j.core.config.Configurator.setLevel(f"org.apache.spark.{each}", log4j.Level.OFF)


def session_settings(given: Mapping[str, str], *, is_short: bool) -> dict[str, str]:
    """All that a session is made with: ours where nobody else says anything, then `given`."""
    ours = {**DEFAULTS, "spark.sql.warehouse.dir": _warehouse()}
    ours |= {f"spark.executorEnv.{name}": value for name, value in WORKER_MEMORY.items()}
    known = configured()
    if is_short:
        options = (SHORT_COMMAND, class_data_options({**known, **given}), _log_options())
        ours["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
        ours["spark.executor.extraJavaOptions"] = SHORT_COMMAND
    return {**{key: ours[key] for key in ours if key not in known}, **NEEDED, **given}


def _log_options() -> str:
    """Quiet, unless there is a configuration of logging; Spark would cut a path at its spaces."""
    if "SPARK_CONF_DIR" in os.environ or len(str(LOGGING).split()) > 1:
        return ""
    return f"-Dlog4j2.configurationFile=file:{LOGGING}"


def _warehouse() -> str:
    """Spark would otherwise leave a folder in the directory that a command is run from."""
    return f"{tempfile.gettempdir()}/horolog-spark-warehouse"
