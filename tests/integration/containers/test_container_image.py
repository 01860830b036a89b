"""The image: what is in it and what is not, and what `docker run` gives without configuration."""

import json
import re
from pathlib import Path

import pytest

from tests.support.clients.container_clients import read_all, round_trip_inside, written
from tests.support.clients.containers import HARDENED, IMAGE, ROOT, Container, docker, until
from tests.support.ports import free_port

MAX_BYTES = 150_000_000
BUILDERS = "gcc cc as ld pip pip3 apt apt-get dpkg perl cython python3-config"


LEFT_OVERS = """\
import pathlib, sys
print(*(found for name in sys.argv[1:] for found in pathlib.Path("/opt").rglob(name)))
"""
FILES_OF = "import sys, importlib as i; print(*(i.import_module(n).__file__ for n in sys.argv[1:]))"


def python(code: str, *arguments: str) -> list[str]:
    return docker("run", "--rm", IMAGE, "python", "-c", code, *arguments).split()


def is_walker(file: Path) -> bool:
    return "\nimport cython\n" in file.read_text()


def inside(script: str) -> str:
    return docker("run", "--rm", IMAGE, "sh", "-c", script)


def test_it_is_small_and_runs_as_nobody_in_particular() -> None:
    (facts,) = json.loads(docker("image", "inspect", IMAGE))
    assert facts["Size"] < MAX_BYTES
    assert facts["Config"]["User"] == "10092:10092"
    assert list(facts["Config"]["Volumes"]) == ["/data"]
    assert facts["Config"]["StopSignal"] == "SIGTERM"
    assert facts["Config"]["Healthcheck"]["Test"] == ["CMD", "horolog", "health"]


def test_nothing_that_builds_or_tests_is_in_it() -> None:
    assert inside(f"for each in {BUILDERS}; do command -v $each; done; true") == ""
    assert python(LEFT_OVERS, "*.pyx", "*.c", "tests", "pip", "Cython", "setuptools") == []


def test_what_is_served_beside_the_code_is_in_it() -> None:
    here = {p.name for p in (ROOT / "broker/http/timeline/page").iterdir() if p.is_file()}
    assert {file.rpartition("/")[2] for file in python(LEFT_OVERS, *here)} == here


def test_the_walkers_are_compiled() -> None:
    files = filter(is_walker, (ROOT / "protocol" / "records").rglob("*.py"))
    walkers = [".".join(each.relative_to(ROOT).with_suffix("").parts) for each in files]
    assert len(walkers) > 5
    assert all(file.endswith(".so") for file in python(FILES_OF, *walkers))


def test_other_commands_and_other_programs_are_run_as_they_are_named() -> None:
    assert inside("id -u").strip() == "10092"
    assert docker("run", "--rm", IMAGE, "--help").startswith("Usage: horolog serve")
    assert docker("run", "--rm", IMAGE, "dump", "--help").startswith("Usage: horolog dump")
    assert re.fullmatch(
        r"horolog \d.* \(compiled\)\n", docker("run", "--rm", IMAGE, "horolog", "--version")
    )


def test_without_configuration_clients_outside_and_inside_are_served_on_one_port() -> None:
    port = free_port()
    options = [*HARDENED, "--publish", f"127.0.0.1:{port}:9092"]
    published = (
        f"HOROLOG_PUBLISHED_LISTENERS=PLAINTEXT://localhost:{port}"  # 9092 may be taken here
    )
    with Container.started(*options, "--env", published) as broker:
        broker.until_ready()
        assert f"next: kcat -L -b localhost:{port}\n" in broker.log
        written(f"localhost:{port}", "outside", [b"one"])
        assert read_all(f"localhost:{port}", "outside") == [b"one"]
        inner = f"{broker.address}:9092"
        assert "read two" in round_trip_inside(inner, "inside", "two", network="bridge")
        assert broker.execute("horolog", "health") == "ready\n"


def test_it_says_where_the_host_finds_it_when_9092_is_published() -> None:
    with Container.started() as broker:
        broker.until_ready()
        assert "horolog ready bootstrap=localhost:9092 http=127.0.0.1:9404 next: kcat" in broker.log


def test_the_health_check_follows_the_broker() -> None:
    often = ["--health-interval=1s", "--health-timeout=2s", "--health-retries=2"]
    with Container.started(*often) as broker:
        assert broker.health == "starting"
        until("healthy", lambda: broker.health == "healthy")
        docker("kill", "--signal=STOP", broker.name)
        until("unhealthy", lambda: broker.health == "unhealthy")
        docker("kill", "--signal=CONT", broker.name)
        until("healthy again", lambda: broker.health == "healthy")


@pytest.mark.parametrize(
    ("variable", "status", "words"),
    [
        ("KAFKA_LOG_RETENTION_MSS=1", 1, "did you mean log.retention.ms?"),
        ("KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://0.0.0.0:9092", 1, "no client can connect"),
        ("KAFKA_LOG_DIRS=/nowhere/data", 2, "/nowhere"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(variable: str, status: int, words: str) -> None:
    with Container.started("--read-only", "--env", variable) as broker:
        until("an end", lambda: not broker.state["Running"])
        assert broker.state["ExitCode"] == status
        assert words in broker.log
        assert broker.log.count("\n") == 1


def test_variables_of_the_environment_are_settings_by_kafka_s_rule() -> None:
    options = ["--env", "KAFKA_LOG_RETENTION_MS=12345", "--env", "HOROLOG_DURABILITY=os"]
    with Container.started(*options) as broker:
        broker.until_ready()
        retention = broker.execute("horolog", "config", "explain", "log.retention.ms")
        assert "12345" in retention
        assert "KAFKA_LOG_RETENTION_MS" in retention
