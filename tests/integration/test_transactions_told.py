"""A transaction that is left open: told by command line and metrics, ended by the held clock."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from broker.cli.main import main
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NodeProcess]:
    with start_broker(tmp_path / "data", options=("--test-clock",)) as running:
        monkeypatch.setenv("HOROLOG_HTTP", running.facts["http"])
        yield running


def series(node: NodeProcess) -> dict[str, float]:
    """The metrics of transactions."""
    with urlopen(f"http://{node.facts['http']}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    told = (line.rsplit(" ", 1) for line in lines if line.startswith("horolog_transaction"))
    return {name: float(value) for name, value in told}


def test_what_is_left_open_is_told_and_ends_when_the_clock_says_so(
    node: NodeProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> str:
        assert main(arguments) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    assert "There are no transactional ids." in run("transactions")
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(30)
    producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "billing"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("t", b"never read", partition=0)
    assert producer.flush(30) == 0
    listed = run("transactions", "--open")
    assert listed.splitlines()[1].split()[:2] == ["billing", "Ongoing"]
    described = run("transactions", "billing")
    assert described.splitlines()[-1].split() == ["t-0", "0", "1"]
    assert series(node)["horolog_transactions_open"] == 1
    assert 'horolog_transaction_oldest_open_seconds{partition="0",topic="t"}' in series(node)
    run("clock", "step", "2m")
    assert "No transaction is open." in run("transactions", "--open")
    assert "billing: CompleteAbort" in run("transactions", "billing")
    time.sleep(1.1)  # a scrape is kept for a second
    assert series(node)['horolog_transactions_ended_total{how="timed_out"}'] == 1
    assert main(["transactions", "nobody"]) == 1
    assert "Nobody uses the id 'nobody'" in capsys.readouterr().err
