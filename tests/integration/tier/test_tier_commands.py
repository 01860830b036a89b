"""`horolog tier`, on a broker whose closed segments go to a real object store."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from broker.cli.main import main
from tests.integration.tier.test_tiered_broker import (
    make_topic,
    server,
    start,
    until,
    wait_until_away,
    write,
)
from tests.support.tier.s3_server import S3Server, only_aws

__all__ = ["server"]

Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command to a status; what it printed."""

    def run(*arguments: str, status: int = 0) -> str:
        assert main(arguments) == status, capsys.readouterr()
        return capsys.readouterr().out

    return run


@pytest.fixture
def broker(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with start(server, tmp_path / "data") as broker:
        monkeypatch.setenv("HOROLOG_HTTP", broker.facts["http"])
        yield broker


def state_of(run: Run) -> dict[str, Any]:
    (state,) = json.loads(run("tier", "status", "t", "--json"))["partitions"]
    return dict(state)


def configure(bootstrap: str, **settings: str) -> None:
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in settings.items()
    ]
    change = ConfigResource(ConfigResource.Type.TOPIC, "t", incremental_configs=entries)
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.incremental_alter_configs([change])[change].result(30)


def test_status_shows_where_segments_are_and_what_waits(broker: Any, run: Run) -> None:
    assert "No partition is tiered" in run("tier", "status")
    make_topic(broker.bootstrap, "t")
    write(broker.bootstrap, "t")
    local = wait_until_away(broker.bootstrap, "t")
    until(lambda: not state_of(run)["waiting"]["segments"], "some segments are not copied")
    state = state_of(run)
    assert state["local_start_offset"] == local
    assert state["store"]["segments"] > 1
    assert state["store"]["size_bytes"] > 1024 * 1024
    assert state["local"]["segments"] == 1
    assert state["blocked_by"] is None
    configure(broker.bootstrap, remote_log_copy_disable="true", local_retention_bytes="-2")
    write(broker.bootstrap, "t", 6000, 3000)
    until(lambda: state_of(run)["waiting"]["segments"] > 1, "no segment is closed")
    state = state_of(run)
    assert state["blocked_by"] == "copy_disabled"
    assert state["waiting"]["size_bytes"] > 1024 * 1024
    text = run("tier", "status")
    assert "t-0: remote.log.copy.disable is true" in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_status_names_the_error_of_a_store_that_is_away(
    broker: Any, server: S3Server, run: Run
) -> None:
    make_topic(broker.bootstrap, "t")
    write(broker.bootstrap, "t", count=1000)
    until(lambda: state_of(run)["local_start_offset"] >= 0, "no state")
    with server.frozen():
        write(broker.bootstrap, "t", 1000, 3000)
        until(lambda: state_of(run)["waiting"]["segments"] > 0, "nothing waits")
        until(lambda: state_of(run)["blocked_by"] is not None, "no reason is shown")
        state = state_of(run)
        assert state["blocked_by"] in {"failing", "unreachable"}
        assert state["blocked_because"]
    until(lambda: not state_of(run)["waiting"]["segments"], "copying does not go on")
    assert state_of(run)["last_error"] is None


def test_verify_names_each_damaged_object(
    broker: Any, server: S3Server, run: Run, tmp_path: Path
) -> None:
    make_topic(broker.bootstrap, "t")
    write(broker.bootstrap, "t")
    wait_until_away(broker.bootstrap, "t")
    until(lambda: not state_of(run)["waiting"]["segments"], "some segments are not copied")
    broker.kill()
    with only_aws(server.environment):
        _damage_is_named(server, tmp_path.name, run)


def _damage_is_named(server: S3Server, prefix: str, run: Run) -> None:
    store, url = server.open(prefix), server.url(prefix)
    assert "Each named object" in run("tier", "verify", "--from", url, "--deep")
    logs = [each for each in store.list("topics/t/") if each.key.endswith(".log")]
    sides = [each.key for each in store.list("topics/t/") if each.key.endswith(".side")]
    lost, cut, changed = logs[0].key, logs[1].key, logs[2].key
    content = {each: store.get(each) for each in (cut, changed)}
    store.delete([lost, cut, changed, sides[3]])
    store.put_new(cut, content[cut][:-1])
    store.put_new(changed, bytes([content[changed][0] ^ 1]) + content[changed][1:])
    found = findings(run("tier", "verify", "--from", url, "--json", status=3))
    assert found == {lost: "records", cut: "records", sides[3]: "side"}
    deep = findings(run("tier", "verify", "t", "--from", url, "--deep", "--json", status=3))
    assert deep == {**found, changed: "records"}
    text = run("tier", "verify", "--from", url, status=3)
    assert f"t-0, segment 0: records {lost}: it is not there" in text
    assert "records: reads of these offsets fail with CORRUPT_MESSAGE" in text
    manifests = [each.key for each in store.list("topics/t/") if "/manifest/" in each.key]
    store.delete(manifests[1:2])
    found = findings(run("tier", "verify", "--from", url, "--json", status=3))
    assert "manifest" in found.values()
    run("tier", "verify", "nothing", "--from", url, status=2)
    run("tier", "verify", "--from", f"{url}-elsewhere", status=2)


def findings(text: str) -> dict[str, str]:
    found = [each for state in json.loads(text)["partitions"] for each in state["findings"]]
    return {each["object"]: each["fault"] for each in found}


def test_a_broker_without_a_tier_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.support.worlds.broker_process import start_broker

    with start_broker(tmp_path / "data") as broker:
        monkeypatch.setenv("HOROLOG_HTTP", broker.facts["http"])
        assert main(("tier", "status")) == 1
    assert "remote.log.storage.system.enable is false" in capsys.readouterr().err
