"""docker-compose.yml, up for real: two listeners, kill, stop under load, no loss."""

from collections.abc import Iterator

import pytest

from tests.support.clients.container_clients import Load, read_all, round_trip_inside, written
from tests.support.clients.containers import Stack, compose_command, docker, until

GRACE_SECONDS = 10


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    if not compose_command():
        pytest.skip("neither `docker compose` nor `docker-compose` is there")
    stack = Stack()
    try:
        stack.up()
        yield stack
    finally:
        print(stack.compose("logs", "--no-color", check=False)[-8000:])
        stack.down()


@pytest.fixture(autouse=True)
def running(stack: Stack) -> None:
    stack.up()


def test_clients_on_the_host_and_in_the_network_write_one_log(stack: Stack) -> None:
    written(stack.bootstrap, "both", [b"from the host"])
    inner = round_trip_inside("broker:19092", "both", "from within", network=stack.network)
    assert "read from the host" in inner
    assert read_all(stack.bootstrap, "both") == [b"from the host", b"from within"]


def test_a_killed_broker_has_what_it_acknowledged_on_its_volume(stack: Stack) -> None:
    load = Load(stack.bootstrap, "killed")
    until("a thousand acknowledgements", lambda: len(load.acknowledged) > 1000)
    docker("kill", stack.broker.name)
    stack.up()
    load.stop()
    found = {value.split(b" ")[0] for value in read_all(stack.bootstrap, "killed")}
    assert load.acknowledged <= found


def test_a_broker_that_ends_by_itself_is_started_again(stack: Stack) -> None:
    """By the restart policy; what the engine is told to kill it leaves alone."""
    before = stack.broker.state["StartedAt"]
    stack.broker.execute("sh", "-c", "kill -INT 1; kill -INT 1", check=False)
    until("another start", lambda: stack.broker.state["StartedAt"] != before)
    until("a healthy broker", lambda: stack.broker.health == "healthy")


def test_a_stop_under_load_is_clean_and_within_the_grace(stack: Stack) -> None:
    load = Load(stack.bootstrap, "stopped")
    until("a thousand acknowledgements", lambda: len(load.acknowledged) > 1000)
    broker = stack.broker
    stack.compose("stop", "--timeout", str(GRACE_SECONDS))
    assert broker.state["ExitCode"] == 0, "killed after the grace is 137"
    assert "clean=True" in broker.log
    stack.up()
    load.stop()
    found = {value.split(b" ")[0] for value in read_all(stack.bootstrap, "stopped")}
    assert load.acknowledged <= found


def test_what_prometheus_would_scrape_is_there_by_the_name_of_the_service(stack: Stack) -> None:
    code = (
        "import urllib.request as u; print(u.urlopen('http://broker:9404/metrics').read().decode())"
    )
    command = ["--entrypoint", "python", "horolog:test", "-c", code]
    assert "horolog_" in docker("run", "--rm", "--network", stack.network, *command)
