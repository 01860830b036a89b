"""Streams groups in a real process: a thread of an application over a kill, and what is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.cli.main import main
from protocol.apis import create_topics, streams_group_describe, streams_group_heartbeat
from protocol.apis.streams_group_heartbeat import (
    StreamsSubtopology,
    StreamsTopicInfo,
    StreamsTopology,
)
from tests.support.clients.admin import Admin
from tests.support.clients.wire import WireClient
from tests.support.patience import until
from tests.support.worlds.broker_process import start_broker

SETTINGS = {
    "offsets.topic.num.partitions": "2",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
LOADING = 14
PART = StreamsSubtopology(
    subtopology_id="0",
    source_topics=["t"],
    state_changelog_topics=[StreamsTopicInfo(name="app-changelog")],
)
JOINS: dict[str, Any] = {
    "member_epoch": 0,
    "rebalance_timeout_ms": 60_000,
    "process_id": "p",
    "topology": StreamsTopology(subtopologies=[PART]),
    "active_tasks": [],
    "standby_tasks": [],
    "warmup_tasks": [],
}


@contextmanager
def running(data_dir: Path) -> Iterator[tuple[Any, WireClient]]:
    with start_broker(data_dir, SETTINGS) as process:
        host, port = process.bootstrap.rsplit(":", 1)
        with WireClient(host, int(port)) as client:
            yield process, client


def beat(client: WireClient, **said: Any) -> Any:
    request = streams_group_heartbeat.StreamsGroupHeartbeatRequest(
        group_id="app", member_id="a", **said
    )
    answers: list[Any] = []

    def is_loaded() -> bool:
        answers.append(client.call(request, 0))
        return bool(answers[-1].error_code != LOADING)

    until(is_loaded)
    assert answers[-1].error_code == 0, answers[-1]
    return answers[-1]


def described(client: WireClient) -> Any:
    request = streams_group_describe.StreamsGroupDescribeRequest(group_ids=["app"])
    return client.call(request, 0).groups[0]


def test_a_thread_goes_on_after_a_kill_and_the_group_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path / "data") as (process, client):
        topic = create_topics.CreatableTopic(name="t", num_partitions=3, replication_factor=1)
        client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        epochs = [beat(client, **JOINS).member_epoch]

        def runs() -> bool:
            answer = beat(client, member_epoch=epochs[-1])
            epochs.append(answer.member_epoch)
            return bool(answer.active_tasks)

        until(runs)
        before = described(client)
        assert before.members[0].assignment.active_tasks[0].partitions == [0, 1, 2]
        process.kill()
    with running(tmp_path / "data") as (process, client):
        answer = beat(client, member_epoch=epochs[-1])
        assert (answer.member_epoch, answer.active_tasks, answer.status) == (epochs[-1], None, [])
        assert described(client) == before
        admin = Admin(process.facts["http"])
        shown = admin.get("/api/groups/app")
        assert (shown["type"], shown["state"], shown["protocol"]) == ("streams", "Stable", "sticky")
        assert [each["member_id"] for each in shown["member_states"]] == ["a"]
        assert admin.get("/api/topics/app-changelog")["partitions"] == 3
        monkeypatch.setenv("HOROLOG_HTTP", process.facts["http"])
        assert main(("groups",)) == 0
        assert "app streams Stable 1" in " ".join(capsys.readouterr().out.split())
