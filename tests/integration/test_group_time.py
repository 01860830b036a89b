"""Groups and time: sessions and offsets follow the held clock, lag is told in records and hours."""

import shutil
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from protocol.apis import (
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.integration.test_held_clock_process import START, Held, produce
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import HOROLOG, start_broker

HOUR_MS = 3_600_000
SESSION_MS = 30_000


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Held]:
    with start_broker(
        tmp_path / "data",
        {"group.initial.rebalance.delay.ms": "100", "offsets.topic.num.partitions": "2"},
        options=["--test-clock", START],
    ) as process:
        broker = Held(process, tmp_path / "data")
        broker.make_topic("t", retention_ms="-1")
        yield broker


def joined(client: WireClient) -> heartbeat.HeartbeatRequest:
    """A member of a group of one; what it says when it lives."""
    request = join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    request.member_id = client.call(request, 9).member_id
    answer = client.call(request, 9)  # the clock stands still, and yet it comes
    assert (answer.error_code, answer.generation_id) == (0, 1)
    who = {"group_id": "g", "generation_id": 1, "member_id": request.member_id}
    part = sync_group.SyncGroupRequestAssignment(member_id=request.member_id, assignment=b"all")
    sync = sync_group.SyncGroupRequest(
        **who, protocol_type="consumer", protocol_name="range", assignments=[part]
    )
    assert client.call(sync, 5).assignment == b"all"
    return heartbeat.HeartbeatRequest(**who)


def commit(client: WireClient, offset: int, **who: object) -> None:
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])
    request = offset_commit.OffsetCommitRequest(group_id="g", topics=[topic], **who)
    answer = client.call(request, 9)
    assert answer.topics[0].partitions[0].error_code == 0


def committed(client: WireClient) -> int:
    wanted = [offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=wanted)
    answer = client.call(offset_fetch.OffsetFetchRequest(groups=[group]), 9)
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


def test_sessions_and_committed_offsets_follow_the_held_clock(held: Held) -> None:
    with held.client() as client:
        alive = joined(client)
        commit(client, 1, member_id=alive.member_id, generation_id_or_member_epoch=1)
        held.admin.post("/api/clock/step", by="29s")
        assert client.call(alive, 4).error_code == 0
        held.admin.post("/api/clock/step", by="29s")
        assert client.call(alive, 4).error_code == 0
        held.admin.post("/api/clock/step", by="30s")
        assert client.call(alive, 4).error_code == 25
        held.admin.post("/api/clock/step", by="6d")
        assert committed(client) == 1
        held.admin.post("/api/clock/step", by="1d", every="10m")
        assert committed(client) == -1
        assert held.admin.get("/api/groups")["groups"] == []


def test_lag_is_told_in_records_and_in_time_by_both_clocks(held: Held) -> None:
    with held.client() as client:
        produce(client, held.now_ms() - 2 * HOUR_MS)
        produce(client, held.now_ms())
        held.admin.post("/api/clock/step", by="3h")
        produce(client, held.now_ms() - HOUR_MS)
        alive = joined(client)
        commit(client, 1, member_id=alive.member_id, generation_id_or_member_epoch=1)

        (group,) = held.admin.get("/api/groups")["groups"]
        assert (group["group"], group["state"], group["members"]) == ("g", "Stable", 1)
        assert group["lag_records"] == 2
        one = held.admin.get("/api/groups/g")
        (partition,) = one["partitions"]
        assert partition["lag_record_time_ms"] == 2 * HOUR_MS
        assert partition["lag_arrival_ms"] == 3 * HOUR_MS
        assert partition["next_record_time"]["ms"] == held.began_ms
        assert one["member_states"][0]["client_id"] == "test"
        assert held.admin.ask("GET", "/api/groups/nothing").status == 404

        scraped = metrics(held)
        place = 'group="g",partition="0",topic="t"'
        assert scraped[f"horolog_consumer_lag_records{{{place}}}"] == 2
        seconds = 'horolog_consumer_lag_seconds{{clock="{}",' + place.replace("{", "{{") + "}}"
        assert scraped[seconds.format("record")] == 7200
        assert scraped[seconds.format("arrival")] == 10_800
        assert scraped['horolog_groups{state="Stable"}'] == 1

        leave = leave_group.LeaveGroupRequest(
            group_id="g", members=[leave_group.MemberIdentity(member_id=alive.member_id)]
        )
        assert client.call(leave, 5).members[0].error_code == 0
    shown = said(held, "groups", "g")
    assert "g: Empty since" in shown
    assert "t-0" in shown
    assert "2 h" in shown
    assert "3 h" in shown
    assert "Empty" in said(held, "groups")


def metrics(held: Held) -> dict[str, float]:
    """Values by name and labels."""
    connection = HTTPConnection(held.admin.address, timeout=60)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def said(held: Held, *arguments: str) -> str:
    assert shutil.which(str(HOROLOG))
    command = [str(HOROLOG), *arguments, "--http", held.admin.address]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_group_is_set_to_a_time_by_either_clock(held: Held) -> None:
    with held.client() as client:
        first_ms = held.now_ms()
        produce(client, first_ms)
        held.admin.post("/api/clock/step", by="1h")
        produce(client, first_ms - 10 * HOUR_MS)  # old, and late
        held.admin.post("/api/clock/step", by="1h")
        produce(client, first_ms + 2 * HOUR_MS)
        commit(client, 3)

        shown = said(held, "groups", "g", "--to-datetime", "-90m", "--by-arrival")
        assert "would be set" in shown
        assert "--execute does it" in shown
        assert committed(client) == 3
        shown = said(held, "groups", "g", "--to-datetime", "-90m", "--by-arrival", "--execute")
        assert "is set" in shown
        assert committed(client) == 1
        said(held, "groups", "g", "--to-datetime", "-90m", "--execute")
        assert committed(client) == 2
        said(held, "groups", "g", "--to-datetime", "now", "--topic", "t", "--execute")
        assert committed(client) == 2
        answer = held.admin.post("/api/groups/g/reset", to=str(first_ms + 3 * HOUR_MS))
        (partition,) = answer["partitions"]
        assert (partition["offset"], partition["new_offset"]) == (2, 3)
        assert (partition["records"], partition["found_time"]) == (1, None)

        joined(client)
        assert held.admin.get("/api/groups/g/reset", to="-1h")["members"] == 1
        refused = held.admin.ask("POST", "/api/groups/g/reset", to="-1h")
        assert refused.status == 409
        assert "stop them" in str(refused.content)
        assert held.admin.ask("GET", "/api/groups/none/reset?to=-1h").status == 404
        assert held.admin.ask("GET", "/api/groups/g/reset?to=noon").status == 400
