"""Java's class-data archive for short commands: a third of what their start costs, kept for later.

The first command has Java write, as it ends, which classes it loaded; those after it map the file.
It fits one Java and one set of Spark's jars and is stored under a name made of both, in the user's
cache (about 160 MB). Before it is used for the first time that Java has to prove it whole, because
one that is cut short would end it. Where it does not fit, Java does without. Nothing here ever
fails.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pipeline.spark.cache_folder import cache_folder
from pipeline.spark.java import spark_home

SILENT = "-Xlog:cds*=off -Xlog:class+path=off"
WRITTEN_SECONDS = 60
"""So long after its last change nobody writes the file any more."""
TRIED_SECONDS = 600
UNUSED_SECONDS = 60 * 86_400
OTHER_CLASSES = ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""With one of these set, the class path has what no archive can be made of, or not for all."""
OTHER_JARS = ("spark.jars", "spark.jars.packages", "spark.driver.extraClassPath")


def class_data_options(settings: Iterable[str] = ()) -> str:
    """Options for Java that use the archive or make it; none where neither can be.

    `settings`: the names of Spark's settings that there are.
    """
    if any(name in os.environ for name in OTHER_CLASSES) or any(
        name in OTHER_JARS for name in settings
    ):
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        spark = spark_home()
        java = _java_home()
        place = _place(java, spark)
        return "" if place is None else _options(place, java, spark)
    return ""


def _options(place: Path, java: Path, spark: Path) -> str:
    made = place.with_suffix(".new")
    if not place.exists() and made.exists() and _age(made) > WRITTEN_SECONDS:
        _adopt(made, place, java, spark)
    if place.exists():
        os.utime(place)
        return f"-XX:SharedArchiveFile={place} {SILENT}"
    if not made.exists() and _is_first(place.with_suffix(".making")):
        return f"-XX:ArchiveClassesAtExit={made} {SILENT}"
    return ""


def _adopt(made: Path, place: Path, java: Path, spark: Path) -> None:
    """Give it its name if Java proves it whole, with the class path that Spark gives."""
    proof = ["-Xshare:on", "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={made}"]
    proof += ["-XX:+ErrorFileToStdout"]  # a torn one can end Java: no report here
    try:
        classes = _class_path(java, spark)
        _run(java, spark, *proof, "-XX:+UseSerialGC", "-cp", classes, "-version")
    except subprocess.SubprocessError:
        made.unlink()
        return
    made.replace(place)
    for path in place.parent.iterdir():
        if _age(path) > UNUSED_SECONDS:  # of a Java or a Spark that is gone
            path.unlink()


def _class_path(java: Path, spark: Path) -> str:
    """As Spark's launcher makes it, which writes the whole command, its words apart by zeros."""
    main = ("org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit")
    words = _run(java, spark, "-cp", f"{spark}/jars/*", *main, "pyspark-shell").split("\0")
    return words[words.index("-cp") + 1] if "-cp" in words else ""


def _run(java: Path, spark: Path, *arguments: str) -> str:
    """Output of Java; SubprocessError when it fails."""
    done = subprocess.run(  # noqa: S603 - the Java that Spark is about to run on
        [str(java / "bin" / "java"), *arguments],
        env={**os.environ, "SPARK_HOME": str(spark), "SPARK_SCALA_VERSION": "2.13"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return done.stdout


def _java_home() -> Path:
    """Of the Java that Spark's launcher will take."""
    wanted = os.environ.get("JAVA_HOME")
    return Path(wanted) if wanted else Path(shutil.which("java") or "/").resolve().parents[1]


def _place(java: Path, spark: Path) -> Path | None:
    """The archive of this Java and this Spark; None for a Java that has none of its own."""
    own = java / "lib" / "server" / "classes.jsa"
    if not own.exists():
        return None
    known = [(java / "release").read_text(encoding="utf-8"), str(java), str(spark), _facts(own)]
    known += sorted(map(_facts, (spark / "jars").iterdir()))
    name = hashlib.blake2b("\n".join(known).encode(), digest_size=12).hexdigest()
    place = cache_folder() / "class-data" / f"{name}.jsa"
    if len(str(place).split()) > 1 or {'"', "'"} & set(str(place)):
        return None  # Spark would take it for several options
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _facts(path: Path) -> str:
    about = path.stat()
    return f"{path.name} {about.st_size} {about.st_mtime_ns}"


def _is_first(marker: Path) -> bool:
    """True when no other process has begun to make the archive lately."""
    try:
        marker.open("x").close()
    except FileExistsError:
        if _age(marker) < TRIED_SECONDS:
            return False
        os.utime(marker)
    return True


def _age(path: Path) -> float:
    return time.time() - path.stat().st_mtime
