"""Java programs of our tests: compiled against the client libraries of a real Kafka, and run."""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.kafka.kafka_oracle import SCRIPT

SOURCES = Path(__file__).resolve().parents[2] / "conformance" / "java"
CACHE = Path(__file__).resolve().parents[3] / ".cache" / "kafka"
STREAMS_VERSION = "4.3.0"
SMALL = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.awt.headless=true")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_POM = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    "<groupId>horolog</groupId><artifactId>streams</artifactId><version>1</version>"
    "<packaging>pom</packaging><dependencies>"
    "<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId>"
    f"<version>{STREAMS_VERSION}</version></dependency>"
    "<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId>"
    "<version>1.7.36</version></dependency></dependencies></project>"
)


def available() -> bool:
    """True when this machine can compile Java and fetch libraries."""
    return all(shutil.which(program) for program in ("java", "javac", "mvn"))


def client_jars() -> Path:
    """The directory with Kafka's client library, downloaded once."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "fetch"], capture_output=True, text=True, check=True
    )
    return Path(done.stdout.strip())


def streams_jars() -> Path:
    """The directory with Kafka Streams, downloaded once."""
    jars = CACHE / f"streams-{STREAMS_VERSION}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".streams.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                (Path(scratch) / "pom.xml").write_text(_POM)
                fetched = Path(scratch) / "jars"
                copy = ["dependency:copy-dependencies", f"-DoutputDirectory={fetched}"]
                subprocess.run(
                    ["mvn", "--batch-mode", "--quiet", *copy],
                    cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, check=True,
                )  # fmt: skip
                fetched.rename(jars)
    return jars


class JavaProgram:
    """One source file, compiled; each `start` is a process of its own."""

    def __init__(self, name: str, jars: Path, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        source = SOURCES / f"{name}.java"
        done = subprocess.run(
            ["javac", "-cp", f"{jars}/*", "-d", str(into), str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        self._command = ["java", *SMALL, QUIET, "-cp", f"{jars}/*:{into}", name]

    def start(self, *arguments: str, log: Path) -> subprocess.Popen[bytes]:
        """A process; what it has to say goes to `log`."""
        with log.open("ab") as sink:
            return subprocess.Popen(
                [*self._command, *arguments], stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
