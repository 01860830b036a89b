"""Whatever somebody changes is told: who, from where, what, and what came of it."""

import asyncio
import json
from collections.abc import Callable, Sequence
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.daemon.routes import served
from broker.runtime.deferred import Deferred
from broker.runtime.principals import ANONYMOUS
from broker.security.audit import sinks
from broker.security.audit.trail import AuditTrail
from broker.server.admin_actions import ACTIONS, NO_ACTIONS, watched
from broker.server.route import Route
from protocol.apis import (
    alter_client_quotas,
    alter_configs,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    incremental_alter_configs,
    metadata,
    offset_commit,
    offset_delete,
    update_features,
    write_txn_markers,
)
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, running_broker
from tests.support.worlds.handler_world import InlineLanes

Lines = list[dict[str, Any]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Lines]:
    """The lines so far, which go to standard error unless a test says otherwise."""
    written: list[str] = []

    def write(self: object, lines: Sequence[str]) -> int:
        written.extend(lines)
        return len(lines)

    monkeypatch.setattr(sinks.StandardError, "write", write)
    return lambda: [json.loads(each) for each in written]


def audit_trail(now: Callable[[], float] = lambda: 1.0) -> AuditTrail:
    """One without a broker."""
    return AuditTrail(now, lambda: 1_790_000_000_000, cast("Any", InlineLanes()))


async def all_told(trail: AuditTrail) -> None:
    """Returns when everything is written."""
    await trail.queue.drain()


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
        (
            update_features.UpdateFeaturesRequest(feature_updates=[feature("share.version", 1)]),
            2, "update feature", "share.version", "done",
        ),
        (
            update_features.UpdateFeaturesRequest(feature_updates=[feature("share.version", 0)]),
            2, "update feature", "share.version", "refused 96",
        ),
        (
            update_features.UpdateFeaturesRequest(feature_updates=[feature("none", 1)]),
            1, "update feature", "none", "refused 95",
        ),
    ]  # fmt: skip


def feature(name: str, level: int) -> update_features.FeatureUpdateKey:
    """A change of a level, downwards."""
    return update_features.FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=2)


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
            await all_told(broker.services.trail)
            lines = told()[before:]
            assert [[e["operation"], e["resource"], e["outcome"]] for e in lines] == [said], request
            (line,) = lines
            assert (line["event"], line["api"], line["count"]) == (
                "admin_change", type(request).__name__.removesuffix("Request"), 1
            )  # fmt: skip
            assert (line["client_id"], line["host"]) == ("test", "127.0.0.1")
            assert (line["listener"], line["principal"]) == ("PLAINTEXT", "User:ANONYMOUS")


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
    file.chmod(0o600)
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
    assert (first["event"], first["resource"]) == ("authentication_failed", "HTTP")
    assert (second["operation"], second["resource"]) == ("HTTP POST", "/api/clock/confirm")
    assert (second["host"], second["listener"]) == ("127.0.0.1", "HTTP")
    assert second["outcome"] == "refused 400"
    assert "0123456789abcdef" not in json.dumps(told())
    assert "wrong-wrong" not in json.dumps(told())


async def test_nothing_is_changed_that_would_leave_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file fails, and standard error is closed; what is asked for and read goes on."""
    monkeypatch.setattr(sinks.StandardError, "write", lambda *_: 0)
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    file.chmod(0o600)
    settings = {"horolog.http.token.file": str(file)}
    async with running_broker(tmp_path / "d", settings) as broker, client_of(broker) as client:
        trail = broker.services.trail
        topic = create_topics.CreatableTopic(name="first", num_partitions=1, replication_factor=1)
        request = create_topics.CreateTopicsRequest(topics=[topic])
        await client.call(request, 7)  # made, and its line waits
        await until(lambda: trail.is_lost)
        assert "audit_lost" in await asyncio.to_thread(post_to, str(broker.http))
        ready = await asyncio.to_thread(get_from, str(broker.http), "/readyz?verbose")
        assert "security_audit" in ready
        assert "nothing may be changed" in ready
        async with client_of(broker) as another:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await another.call(request, 7)
        await client.call(metadata.MetadataRequest(topics=None), 9)
        monkeypatch.undo()
        trail.flush()
        await until(lambda: not trail.is_lost)
        answer = await client.call(request, 7)
        assert answer.topics[0].error_code == 36


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never holds")


def post_to(address: str) -> str:
    connection = HTTPConnection(address, timeout=20)
    try:
        headers = {"Authorization": "Bearer 0123456789abcdef"}
        connection.request("POST", "/api/clock/confirm", b"", headers)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def get_from(address: str, path: str) -> str:
    connection = HTTPConnection(address, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


async def test_values_are_told_with_those_before_and_secrets_never(
    tmp_path: Path, told: Callable[[], Lines]
) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        name = create_topics.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await client.call(create_topics.CreateTopicsRequest(topics=[name]), 7)

        async def alter(kind: int, name: str, **values: str | None) -> None:
            configs = [
                incremental_alter_configs.AlterableConfig(
                    name=key.replace("_", "."),
                    value=value,
                    config_operation=1 if value is None else 0,
                )
                for key, value in values.items()
            ]
            resource = incremental_alter_configs.AlterConfigsResource(
                resource_type=kind, resource_name=name, configs=configs
            )
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
            await client.call(request, 1)

        await alter(2, "t", retention_ms="5000")
        await alter(2, "t", retention_ms="6000")
        await alter(2, "t", retention_ms=None)
        await alter(4, "", max_connections="77")
        await alter(4, "1", ssl_key_password="hunter2", ssl_kye_password="hunter3")
        for value in (5000.0, None):
            await set_quota(client, value, ("client-id", "noisy"))
        await set_quota(client, 7000.0, ("user", "u"), ("client-id", "noisy"))
        await set_quota(client, 8000.0, ("user", "u"), ("user", None))
    details = [each["detail"] for each in told()[1:]]
    assert details[:4] == [
        "retention.ms=5000 (was default)",
        "retention.ms=6000 (was 5000)",
        "retention.ms deleted (was 6000)",
        "max.connections=77 (was default)",
    ]
    assert "ssl.key.password=[hidden] (was default) ssl.kye.password=[hidden]" in details[4]
    assert details[5:] == [
        "producer_byte_rate=5000 (was none)",
        "producer_byte_rate deleted (was 5000)",
        "producer_byte_rate=7000 (was none)",
        "producer_byte_rate=8000 (was none)",
    ]
    assert "hunter" not in json.dumps(told())


async def set_quota(
    client: AsyncWireClient, value: float | None, *parts: tuple[str, str | None]
) -> None:
    """Of the entity with these parts, in the order in which the client names them."""
    entity = [
        alter_client_quotas.EntityData(entity_type=kind, entity_name=name) for kind, name in parts
    ]
    op = alter_client_quotas.OpData(
        key="producer_byte_rate", value=value or 0.0, remove=value is None
    )
    quota = alter_client_quotas.EntryData(entity=entity, ops=[op])
    await client.call(alter_client_quotas.AlterClientQuotasRequest(entries=[quota]), 1)


def test_an_acl_is_told_with_its_kind_of_pattern() -> None:
    asked, came = create_acls.AclCreation, create_acls.AclCreationResult
    request = create_acls.CreateAclsRequest(
        creations=[asked(resource_name="a", resource_pattern_type=kind) for kind in (3, 4)]
    )
    made = create_acls.CreateAclsResponse(results=[came(), came()])
    gone = [delete_acls.DeleteAclsMatchingAcl(resource_name="a", pattern_type=4)]
    found = delete_acls.DeleteAclsResponse(
        filter_results=[delete_acls.DeleteAclsFilterResult(matching_acls=gone)]
    )
    wanted = delete_acls.DeleteAclsRequest(filters=[delete_acls.DeleteAclsFilter()])
    told = [*described("CreateAcls")(request, made), *described("DeleteAcls")(wanted, found)]
    assert [each.detail.split()[1] for each in told] == ["pattern=3", "pattern=4", "pattern=4"]


def described(name: str) -> Callable[[Any, Any], Any]:
    return cast("Callable[[Any, Any], Any]", ACTIONS[name])


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
    trail = audit_trail()
    watched_routes = watched({key: Route(api, handle, None)}, trail)
    context: Any = SimpleNamespace(
        client_id="me", client_host="10.0.0.1", listener_name="X", principal=ANONYMOUS
    )
    try:
        answer = watched_routes[key].handle(object(), context)
        if how == "awaited":
            await answer
    except RuntimeError:
        pass
    await all_told(trail)
    (line,) = told()
    assert (line["operation"], line["outcome"], line["client_id"], line["detail"]) == (
        "CreateTopics", "failed", "me", "RuntimeError: the disk is on fire"
    )  # fmt: skip
