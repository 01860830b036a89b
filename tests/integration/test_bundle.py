"""A support bundle of a real broker: everything that helps, and none of the planted secrets."""

import json
import tarfile
from pathlib import Path

import pytest

from broker.cli.main import main
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from tests.support.worlds.watched_broker import WatchedBroker

TOKEN = "canary-of-the-token-0123456789"
IN_LOG = "canary-in-a-password-of-the-log"
IN_RECORD = b"canary-in-key-and-value"
IN_FILE = "canary-in-a-settings-file"


def contents(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        found = {}
        for entry in archive.getmembers():
            file = archive.extractfile(entry)
            assert file is not None
            found[entry.name.partition("/")[2]] = file.read().decode()
        return found


def test_a_bundle_has_what_helps_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    token, config, log = tmp_path / "token", tmp_path / "server.properties", tmp_path / "log"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    config.write_text(f"num.partitions=3\n# old.password={IN_FILE}\n")
    settings = {"horolog.http.token.file": str(token)}
    with WatchedBroker(tmp_path / "data", settings, log=log) as broker, broker.client() as client:
        broker.make_topic("orders")
        batch = build_batch([(1, IN_RECORD, IN_RECORD)])
        data = PartitionProduceData(index=0, records=batch)
        topics = [TopicProduceData(name="orders", partition_data=[data])]
        client.call(ProduceRequest(acks=-1, timeout_ms=9000, topic_data=topics), 9)
        with log.open("a") as file:
            file.write(f"level=info event=x password={IN_LOG} bearer {TOKEN}\n")
        monkeypatch.setenv("HOROLOG_HTTP_TOKEN", TOKEN)
        made = tmp_path / "bundle.tar.gz"
        where = ["--http", broker.process.facts["http"], "--output", str(made)]
        more = ["--log", str(log), "--data-dir", str(tmp_path / "data"), "--config", str(config)]
        monkeypatch.delenv("HOROLOG_HTTP_TOKEN_FILE", raising=False)
        status = main(["bundle", *where, *more])
        told = capsys.readouterr()
        assert status == 0, told.err
        assert told.err == ""
        broker.check_unharmed()
    files = contents(made)
    assert made.stat().st_mode & 0o077 == 0
    assert {
        "about.json", "config.json", "metrics.txt", "readyz.txt", "clock.json", "topics.json",
        "segments/orders.json", "groups.json", "dirty.json", "scrub.json", "starts.json",
        "settings.txt", "log.txt", "files.txt",
    } == files.keys()  # fmt: skip
    everything = "".join(files.values())
    for secret in (TOKEN, IN_LOG, IN_RECORD.decode(), IN_FILE):
        assert secret not in everything
    assert json.loads(files["about.json"])["versions"]["horolog"]
    assert "event=ready" in files["log.txt"]
    assert "num.partitions = 3    [" in files["settings.txt"]
    assert "orders-0/00000000000000000000.log" in files["files.txt"]
    assert "horolog_ready 1" in files["metrics.txt"]
    found = {each["name"]: each for each in json.loads(files["config.json"])["settings"]}
    assert found["log.dirs"]["value"] == str(tmp_path / "data")
    assert "log.dirs" in found["log.dirs"]["where"]
    assert found["num.partitions"]["where"] is None
    assert json.loads(files["segments/orders.json"])["partitions"]


def test_a_broker_that_does_not_answer_is_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "b.tar.gz"
    assert main(["bundle", "--http", "127.0.0.1:1", "--output", str(made)]) == 0
    assert "missing: config.json: no broker answers" in capsys.readouterr().err
    files = contents(made)
    assert "no broker answers" in files["metrics.txt"]
    assert "log.dirs = data" in files["settings.txt"]


def test_it_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = tmp_path / "b.tar.gz"
    made.write_text("mine")
    assert main(["bundle", "--http", "127.0.0.1:1", "--output", str(made)]) == 2
    assert "File exists" in capsys.readouterr().err
    assert made.read_text() == "mine"
