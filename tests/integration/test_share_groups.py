"""Share groups in a real process: members over a kill, what the admin API shows and refuses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from protocol.apis import create_topics, share_group_describe, share_group_heartbeat
from tests.support.clients.admin import Admin
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker


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
