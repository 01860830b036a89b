"""Share groups in a real process: members over a kill, what the admin API shows and refuses."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.cli.main import main
from protocol.apis import (
    create_topics,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.clients.wire import WireClient
from tests.support.page.timeline_answers import queues
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.handler_world import produce_request


@contextmanager
def running(data_dir: Path) -> Iterator[tuple[Any, WireClient]]:
    with start_broker(data_dir, {"offsets.topic.num.partitions": "2"}) as process:
        host, port = process.bootstrap.rsplit(":", 1)
        with WireClient(host, int(port)) as client:
            yield process, client


def beat(client: WireClient, member: str, epoch: int, *names: str) -> Any:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id="g",
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=list(names) or None,
    )
    while True:
        answer = client.call(request, 1)
        if answer.error_code != 14:  # what was remembered is still being read
            return answer


def described(client: WireClient) -> Any:
    request = share_group_describe.ShareGroupDescribeRequest(group_ids=["g"])
    return client.call(request, 1).groups[0]


def test_members_go_on_after_a_kill_and_the_admin_api_shows_them(tmp_path: Path) -> None:
    with running(tmp_path / "data") as (process, client):
        topic = create_topics.CreatableTopic(name="t", num_partitions=3, replication_factor=1)
        client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        answer = beat(client, "a", 0, "t")
        (part,) = answer.assignment.topic_partitions
        assert (answer.member_epoch, part.partitions) == (3, [0, 1, 2])
        before = described(client)
        process.kill()
    with running(tmp_path / "data") as (process, client):
        assert beat(client, "a", 3).error_code == 0
        assert described(client) == before
        admin = Admin(process.facts["http"])
        shown = admin.get("/api/groups/g")
        assert (shown["type"], shown["state"], shown["generation"]) == ("share", "Stable", 3)
        assert [each["member_id"] for each in shown["member_states"]] == ["a"]
        assert beat(client, "a", -1).error_code == 0
        refused = admin.ask("GET", "/api/groups/g/reset?to=0")
        assert (refused.status, refused.content["error"]["code"]) == (409, "group_without_offsets")


def fetched(client: WireClient, topic_id: Any, epoch: int) -> Any:
    part = share_fetch.ShareFetchPartition(partition_index=0, acknowledgement_batches=[])
    topics = [share_fetch.ShareFetchTopic(topic_id=topic_id, partitions=[part])]
    request = share_fetch.ShareFetchRequest(
        group_id="g", member_id="a", share_session_epoch=epoch, max_wait_ms=10_000, min_bytes=1,
        max_bytes=1 << 20, max_records=500, batch_size=500, topics=topics,
        forgotten_topics_data=[],
    )  # fmt: skip
    return client.call(request, 2)


def test_who_holds_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path / "data") as (process, client):
        topic = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        admin = Admin(process.facts["http"])
        assert admin.get("/api/share-groups") == {"groups": [], "next": None}
        assert admin.ask("GET", "/api/share-groups/g").status == 404
        (part,) = beat(client, "a", 0, "t").assignment.topic_partitions
        fetched(client, part.topic_id, 0)
        rows = [(1_700_000_000_000, None, b"%d" % number) for number in range(3)]
        client.call(produce_request(build_batch(rows)), 12)
        answer = fetched(client, part.topic_id, 1)
        (got,) = answer.responses[0].partitions[0].acquired_records
        assert (got.first_offset, got.last_offset, got.delivery_count) == (0, 2, 1)
        (shown,) = admin.get("/api/share-groups")["groups"]
        assert shown["oldest_record_seconds"] > 86_400 > shown["oldest_arrival_seconds"]
        shown = {name: shown[name] for name in ("group", "partitions", "sessions", "behind")}
        assert shown == {"group": "g", "partitions": 1, "sessions": 1, "behind": 3}
        (state,) = admin.get("/api/share-groups/g")["partitions"]
        assert (state["topic"], state["start"], state["end"]) == ("t", 0, 2)
        assert state["records"]["acquired"] == 3
        assert state["oldest_record_seconds"] > 86_400 > state["oldest_arrival_seconds"]
        (held,) = state["held"]
        assert (held["first"], held["last"], held["deliveries"], held["member"]) == (0, 2, 1, "a")
        assert held["until"]["ms"] - held["since"]["ms"] == 30_000
        monkeypatch.setenv("HOROLOG_HTTP", process.facts["http"])
        assert main(("groups", "g")) == 0
        text = capsys.readouterr().out
        assert "1 member, 3 records behind" in text
        (row,) = [line for line in text.splitlines() if "0-2" in line]
        assert row.split()[:4] == ["t-0", "0-2", "1", "a"]
        (listed,) = admin.get("/api/share-groups/g/records")["records"]
        assert (listed["first"], listed["last"], listed["member"]) == (0, 2, "a")
        assert (listed["state"], listed["until"]) == ("acquired", held["until"])
        assert (listed["record_time"]["ms"], listed["due"]) == (1_700_000_000_000, None)
        (queue,) = admin.get("/api/timeline/queues")["queues"]
        assert (queue["group"], queue["topic"], queue["start"], queue["behind"]) == ("g", "t", 0, 3)
        (made_up,) = queues("g", "t")["queues"]
        assert queue.keys() == made_up.keys(), "the page is tried with what a broker says"
        assert queue["records"].keys() == made_up["records"].keys()
        assert queue["letters"].keys() == made_up["letters"].keys()


def test_queues_are_shown_by_a_command_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        assert main(("queues", *arguments)) == 0
        return capsys.readouterr().out

    with running(tmp_path / "data") as (process, client):
        monkeypatch.setenv("HOROLOG_HTTP", process.facts["http"])
        assert said() == "No share group has read anything.\n"
        assert main(("queues", "g")) == 1
        assert "no share group 'g'" in capsys.readouterr().err
        assert main(("queues", "--topic", "t")) == 2
        assert "go with --records" in capsys.readouterr().err
        topic = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7)
        (part,) = beat(client, "a", 0, "t").assignment.topic_partitions
        fetched(client, part.topic_id, 0)
        rows = [(1_700_000_000_000, None, b"%d" % number) for number in range(3)]
        client.call(produce_request(build_batch(rows)), 12)
        fetched(client, part.topic_id, 1)
        assert re.search(r"^g +1 +1 +3 +\d+ y", said(), re.MULTILINE)
        one = said("g")
        assert "g: 1 session, 3 records behind" in one
        assert re.search(r"^t-0 +0 +3 +0 +0 +0 +0 +0$", one, re.MULTILINE), "three are acquired"
        records = said("g", "--records")
        assert re.search(r"^t-0 +0-2 +acquired +1 +a +20\S+Z +\d+ y", records, re.MULTILINE)
        assert json.loads(said("g", "--records", "--json"))["next"] is None
        assert json.loads(said("g", "--json"))["partitions"][0]["letters"] == {
            "rejected": 0, "limit": 0,
        }  # fmt: skip
