"""Whatever somebody changes is told: who, from where, what, and what came of it."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from broker.daemon.routes import served
from broker.runtime.admin_trail import (
    LINES_PER_SECOND,
    MAX_SUMS,
    OTHERS,
    AdminChange,
    AdminTrail,
    Who,
)
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import LEVELS, journal
from broker.server.admin_actions import ACTIONS, NO_ACTIONS, watched
from broker.server.route import Route
from protocol.apis import (
    alter_client_quotas,
    alter_configs,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    incremental_alter_configs,
    metadata,
    offset_commit,
    offset_delete,
    write_txn_markers,
)
from tests.support.worlds.app import client_of, running_broker

Lines = list[dict[str, Any]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Lines]:
    written: list[str] = []
    monkeypatch.setattr(journal, "write", written.append)
    monkeypatch.setattr(journal, "as_json", True)
    monkeypatch.setattr(journal, "threshold", LEVELS["info"])

    def changes() -> Lines:
        found = [json.loads(each) for each in written]
        return [each for each in found if each["event"] == "admin_change"]

    return changes


def test_every_api_is_told_or_has_a_reason_not_to() -> None:
    names = {each.api.name for each in served()}
    assert names <= ACTIONS.keys() | NO_ACTIONS.keys()
    assert not ACTIONS.keys() & NO_ACTIONS.keys()
    assert ACTIONS.keys() <= names


def on_topics() -> list[tuple[Any, int, str, str, str]]:
    """Requests, each with what its line says: operation, resource, outcome."""
    topic = create_topics.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    bad = create_topics.CreatableTopic(name="a/b", num_partitions=1, replication_factor=1)
    auto = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name="auto")], allow_auto_topic_creation=True
    )
    grown = create_partitions.CreatePartitionsTopic(name="t", count=3)
    until = delete_records.DeleteRecordsPartition(partition_index=0, offset=-1)
    records = delete_records.DeleteRecordsTopic(name="t", partitions=[until])
    return [
        (create_topics.CreateTopicsRequest(topics=[topic]), 7, "create topic", "t", "done"),
        (create_topics.CreateTopicsRequest(topics=[bad]), 7, "create topic", "a/b", "refused 17"),
        (auto, 9, "create topic", "auto", "done"),
        (
            create_partitions.CreatePartitionsRequest(topics=[grown]),
            2, "add partitions", "t", "done",
        ),
        (
            delete_records.DeleteRecordsRequest(topics=[records]),
            2, "delete records", "t-0", "done",
        ),
    ]  # fmt: skip


def on_settings() -> list[tuple[Any, int, str, str, str]]:
    def resource(kind: int, name: str, key: str, value: str) -> Any:
        config = incremental_alter_configs.AlterableConfig(name=key, value=value)
        return incremental_alter_configs.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config]
        )

    all_of_topic = alter_configs.AlterConfigsResource(
        resource_type=2,
        resource_name="t",
        configs=[alter_configs.AlterableConfig(name="segment.ms", value="9000")],
    )
    entity = alter_client_quotas.EntityData(entity_type="client-id", entity_name="noisy")
    op = alter_client_quotas.OpData(key="producer_byte_rate", value=5000.0)
    quota = alter_client_quotas.EntryData(entity=[entity], ops=[op])
    incremental = incremental_alter_configs.IncrementalAlterConfigsRequest
    return [
        (
            incremental(resources=[resource(2, "t", "retention.ms", "5000")]),
            1, "alter settings", "topic t", "done",
        ),
        (
            incremental(resources=[resource(4, "1", "listeners", "X://:1")]),
            1, "alter settings", "broker 1", "refused 42",
        ),
        (
            alter_configs.AlterConfigsRequest(resources=[all_of_topic]),
            2, "alter settings", "topic t", "done",
        ),
        (
            alter_client_quotas.AlterClientQuotasRequest(entries=[quota]),
            1, "alter quota", "client-id=noisy", "done",
        ),
    ]  # fmt: skip


def on_groups() -> list[tuple[Any, int, str, str, str]]:
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    commit = offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])
    forget = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    offsets = offset_delete.OffsetDeleteRequestTopic(name="t", partitions=[forget])
    marked = write_txn_markers.WritableTxnMarkerTopic(name="no", partition_indexes=[0])
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=7, producer_epoch=0, transaction_result=False, topics=[marked]
    )
    return [
        (
            offset_commit.OffsetCommitRequest(group_id="g", topics=[commit]),
            8, "set offset", "g t-0", "done",
        ),
        (
            offset_delete.OffsetDeleteRequest(group_id="g", topics=[offsets]),
            0, "delete offsets", "g t-0", "done",
        ),
        (
            write_txn_markers.WriteTxnMarkersRequest(markers=[marker]),
            1, "end transaction", "no-0", "refused 3",
        ),
        (
            delete_groups.DeleteGroupsRequest(groups_names=["gone"]),
            2, "delete group", "gone", "refused 69",
        ),
        (delete_topics.DeleteTopicsRequest(topic_names=["t"]), 5, "delete topic", "t", "done"),
    ]  # fmt: skip


async def test_every_change_is_told_with_who_and_what(
    tmp_path: Path, told: Callable[[], Lines]
) -> None:
    settings = {"offsets.topic.num.partitions": "1"}
    async with running_broker(tmp_path, settings) as broker, client_of(broker) as client:
        for _ in range(200):
            if not broker.services.groups.loading.is_under_way:
                break
            await asyncio.sleep(0.05)
        for request, version, *said in [*on_topics(), *on_settings(), *on_groups()]:
            before = len(told())
            await client.call(request, version)
            broker.services.trail.flush()
            lines = told()[before:]
            assert [[e["operation"], e["resource"], e["outcome"]] for e in lines] == [said], request
            (line,) = lines
            assert line["client_id"] == "test"
            assert line["address"] == "127.0.0.1"
            assert (line["by"], line["principal"]) == ("PLAINTEXT", "User:ANONYMOUS")


async def test_only_what_changes_something_is_told(
    tmp_path: Path, told: Callable[[], Lines]
) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        topic = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await client.call(create_topics.CreateTopicsRequest(topics=[topic], validate_only=True), 7)
        await client.call(metadata.MetadataRequest(topics=None), 9)
        assert told() == []


async def test_changes_by_http_are_told_and_so_is_who_was_not_let_in(
    tmp_path: Path, told: Callable[[], Lines]
) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    settings = {"horolog.http.token.file": str(file)}
    async with running_broker(tmp_path / "data", settings) as broker:

        def post(token: str) -> int:
            connection = HTTPConnection(str(broker.http), timeout=20)
            try:
                headers = {"Authorization": f"Bearer {token}"}
                connection.request("POST", "/api/clock/confirm?x=1", b"", headers)
                return connection.getresponse().status
            finally:
                connection.close()

        assert await asyncio.to_thread(post, "wrong-wrong-wrong") == 401
        assert await asyncio.to_thread(post, "0123456789abcdef") == 400
    first, second = told()
    assert (first["operation"], first["resource"]) == ("HTTP POST", "/api/clock/confirm")
    assert (first["address"], first["by"]) == ("127.0.0.1", "HTTP")
    assert (first["outcome"], second["outcome"]) == ("refused 401", "refused 400")
    assert "0123456789abcdef" not in json.dumps(told())


def test_a_burst_is_added_up_and_nothing_is_dropped(told: Callable[[], Lines]) -> None:
    trail = AdminTrail(lambda: 100.0)
    for number in range(5000):
        who = Who(f"client {number % 3}", "10.0.0.1", "PLAINTEXT")
        trail.noted(who, AdminChange("delete topic", f"t{number}", "", number % 2))
    assert len(told()) == LINES_PER_SECOND
    trail.flush()
    lines = told()
    assert len(lines) == LINES_PER_SECOND + 6
    by_outcome: Counter[str] = Counter()
    for each in lines:
        by_outcome[each["outcome"]] += each.get("count", 1)
    assert by_outcome == {"done": 2500, "refused 1": 2500}
    assert trail.changes == 5000


def test_what_is_kept_of_a_burst_is_bounded(told: Callable[[], Lines]) -> None:
    trail = AdminTrail(lambda: 100.0)
    for number in range(5000):
        trail.noted(
            Who(f"client {number}", "h", "X"), AdminChange("delete topic", f"t{number}", "")
        )
    trail.flush()
    lines = told()
    assert len(lines) == LINES_PER_SECOND + MAX_SUMS + 1
    assert lines[-1]["client_id"] == OTHERS
    assert sum(each.get("count", 1) for each in lines) == 5000


@pytest.mark.parametrize("how", ["raised", "awaited", "deferred"])
async def test_a_request_that_ends_in_an_error_nobody_expected_is_told(
    told: Callable[[], Lines], how: str
) -> None:
    error = RuntimeError("the disk is on fire")

    def raised(*_: object) -> Any:
        raise error

    async def awaited(*_: object) -> Any:
        raise error

    def deferred(*_: object) -> Any:
        answer: Deferred[Any] = Deferred()
        answer.fail(error)
        return answer

    handle = {"raised": raised, "awaited": awaited, "deferred": deferred}[how]
    (api,) = (each.api for each in served() if each.api.name == "CreateTopics")
    key = api.key
    watched_routes = watched({key: Route(api, handle, None)}, AdminTrail(lambda: 1.0))
    context: Any = SimpleNamespace(client_id="me", client_host="10.0.0.1", listener_name="X")
    try:
        answer = watched_routes[key].handle(object(), context)
        if how == "awaited":
            await answer
    except RuntimeError:
        pass
    (line,) = told()
    assert (line["operation"], line["outcome"], line["client_id"], line["reason"]) == (
        "CreateTopics", "failed", "me", "RuntimeError: the disk is on fire"
    )  # fmt: skip
