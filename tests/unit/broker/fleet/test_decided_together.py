"""Topics, settings, users, ACLs and quotas of a fleet: decided on one node, had by every one."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest

from broker.fleet.catalog.rows import (
    Document,
    Incarnation,
    ListenerAddress,
    NodeAddress,
    NodeRow,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Registration,
    ShardRow,
)
from broker.fleet.local_logs import LocalLog
from broker.quotas.table import QuotaTable
from broker.runtime.documents import NotDecided
from broker.security.acl import Acl
from broker.security.authority import DOCUMENT as ACLS
from broker.security.credentials import Credential, CredentialKey, Mechanism
from broker.topics.new_topic import NewTopic
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.commits import HeldCommits
from tests.support.fleet.node_services import NOW, SHARDS, FleetNodeWorld, two_nodes


@pytest.fixture
async def nodes() -> Sequence[FleetNodeWorld]:
    return two_nodes()


async def test_a_topic_is_made_grown_and_deleted_on_whatever_node(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await one.create("t", 2)
    await two.catches_up()
    assert one.shapes() == two.shapes() == {"t": 2}
    async with two.broker.topics.changing:
        await two.broker.topics.add_partitions({"t": 5})
    await one.catches_up()
    assert one.shapes() == two.shapes() == {"t": 5}
    async with one.broker.topics.changing:
        await one.broker.topics.delete(["t"])
    await two.catches_up()
    assert one.shapes() == two.shapes() == {}
    assert two.deleted == ["t"]
    assert one.rows.parts == {}


async def test_a_topic_that_was_made_again_elsewhere_is_the_new_one(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await one.create("t")
    await two.catches_up()
    async with one.broker.topics.changing:
        await one.broker.topics.delete(["t"])
    again = await one.create("t", 3)
    await two.catches_up()
    assert two.broker.topics.image.topics["t"].topic_id == again
    assert two.shapes() == {"t": 3}
    assert {log.topic_id for log in two.broker.logs.logs.values()} == {again}


async def test_of_two_that_make_a_topic_of_one_name_one_does(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    first = await one.create("t")
    with pytest.raises(NotDecided, match="has just made"):
        await two.create("t")
    await two.catches_up()
    assert two.broker.topics.image.topics["t"].topic_id == first
    assert list(one.rows.topic_rows) == [first]


async def test_of_topics_of_one_request_all_are_made_or_none(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await one.create("b")
    topics = two.broker.topics
    async with topics.changing:
        with pytest.raises(NotDecided):
            await topics.create([NewTopic(name, uuid4(), 1, {}) for name in ("a", "b", "c")])
    assert [each.name for each in one.rows.topic_rows.values()] == ["b"]
    assert two.shapes() == {}


async def test_settings_of_topics_come_with_them(nodes: Sequence[FleetNodeWorld]) -> None:
    one, two = nodes
    await one.create("t", **{"retention.ms": "5000"})
    await two.catches_up()
    assert two.broker.config.topic_config("t").retention_ms == 5000
    assert two.broker.topics.image.topics["t"].partitions[0].log.config.retention_ms == 5000
    change = two.broker.config.prepare_topic("t", {"retention.ms": "7000"})
    async with two.broker.topics.changing:
        await two.broker.topics.alter_settings(change)
    await one.catches_up()
    assert one.broker.topics.image.topics["t"].partitions[0].log.config.retention_ms == 7000


async def test_a_topic_that_is_made_once_more_elsewhere_keeps_its_settings(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    """A client asks for it where its settings are known, and it is not yet."""
    one, two = nodes
    await one.create("t", **{"retention.ms": "5000"})
    [document] = await one.rows.documents({})
    await two.broker.topics.follow_settings(document.content.decode())
    two.image.note(document)
    for name in ("t", "other"):
        with pytest.raises(NotDecided):
            async with two.broker.topics.changing:
                await two.broker.topics.create(
                    [NewTopic(each, uuid4(), 1, {}) for each in dict.fromkeys((name, "t"))]
                )
    assert await one.rows.documents({}) == [document]
    await two.catches_up()
    assert two.broker.config.topic_config("t").retention_ms == 5000
    assert two.broker.topics.image.topics["t"].partitions[0].log.config.retention_ms == 5000


async def test_a_change_of_old_settings_is_refused_and_takes_nothing_back(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await one.create("t", **{"retention.ms": "5000"})
    with pytest.raises(NotDecided, match="settings were changed on another node"):
        await two.create("u", **{"retention.ms": "6000"})
    assert [each.name for each in one.rows.topic_rows.values()] == ["t"]
    assert two.broker.config.topic_overrides("u") == {}
    await two.catches_up()
    await two.create("u", **{"retention.ms": "6000"})
    await one.catches_up()
    assert one.broker.config.topic_config("u").retention_ms == 6000
    assert one.broker.config.topic_config("t").retention_ms == 5000


ALICE = CredentialKey("alice", Mechanism.SCRAM_SHA_256)
CREDENTIAL = Credential(b"salt" * 5, 4096, b"s" * 32, b"k" * 32)
ACL = Acl(
    ResourceType.TOPIC, PatternType.LITERAL, "t", "User:alice", "*",
    AclOperation.READ, AclPermission.ALLOW,
)  # fmt: skip


async def test_users_acls_and_quotas_count_on_every_node(nodes: Sequence[FleetNodeWorld]) -> None:
    one, two = nodes
    table = QuotaTable({(("user", "alice"),): {"producer_byte_rate": 1000.0}})
    async with one.broker.users.changing:
        await one.broker.users.store({ALICE: CREDENTIAL})
    await one.broker.authority.add([ACL])
    async with one.broker.quotas.changing:
        await one.broker.quotas.store(table)
    await two.catches_up()
    assert two.broker.users.credential(*ALICE) == CREDENTIAL
    assert ACL in two.broker.authority.book
    assert two.broker.quotas.table == table
    removed: list[CredentialKey] = []
    one.broker.users.on_removed = removed.append
    async with two.broker.users.changing:
        await two.broker.users.store({})
    await one.catches_up()
    assert removed == [ALICE], "who logged in by it is sent away there, too"


async def test_a_document_that_cannot_be_read_keeps_what_there_is(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    await one.broker.authority.add([ACL])
    await two.catches_up()
    authority = one.broker.authority.authority
    await authority.decided(ACLS, b'{"format": 99}')
    await one.create("t")
    await two.catches_up()
    assert ACL in two.broker.authority.book
    assert two.shapes() == {"t": 1}, "the rest came"
    with pytest.raises(NotDecided, match="cannot read what they are now"):
        await two.broker.authority.add(
            [ACL._replace(host="10.0.0.1")]
        )  # which would take back what it could not read
    assert one.rows.document_rows[ACLS] == Document(ACLS, 2, b'{"format": 99}')


async def test_who_leads_is_known_of_partitions_that_are_elsewhere(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, _ = nodes
    await one.create("t", 4)
    await one.catches_up()
    me, other = Incarnation(1, 1), Incarnation(2, 1)
    shards = [ShardRow(each, other if each % 2 else me, 5) for each in range(SHARDS)]
    rows = [
        NodeRow(
            each,
            NodeAddress("host", 1),
            "1",
            1,
            NOW,
            False,
            False,
            [ListenerAddress("NET", "host", each.node_id)],
        )
        for each in (me, other)
    ]
    one.image.seen(rows, shards)
    assert one.other_nodes == {1: {"NET": ("host", 1)}, 2: {"NET": ("host", 2)}}
    [row] = one.image.rows
    for partition in one.broker.topics.image.topics["t"].partitions:
        shard = row.shards[partition.index]
        assert partition.leadership is not None
        assert not partition.leadership.is_here, "nothing was loaded"
        assert partition.leadership[:2] == ((2, 1)[shard % 2 == 0], 5)


async def test_a_log_is_served_in_its_epoch_until_it_is_another_nodes(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, _ = nodes
    topic_id = await one.create("t")
    key = PartitionKey(topic_id, 0)
    log = await one.logs.load(PartitionRow(key, "t", 1, 0, [], None), OwnedShard(1, 3), _nothing)
    assert isinstance(log, LocalLog)
    one.logs.serve(log, HeldCommits())
    partition = one.partition("t", 0)
    partition.check_leads()
    assert partition.leader_epoch == 3
    assert list(one.broker.topics.image.led_here()) == [partition]
    one.logs.end_writes(log)
    partition.check_leads()
    with pytest.raises(KafkaError) as refused:
        partition.writer.append(memoryview(b""), -1)
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    one.logs.end(log)
    with pytest.raises(KafkaError) as refused:
        partition.check_leads()
    assert refused.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert list(one.broker.topics.image.led_here()) == []


async def _nothing(_: object) -> list[Any]:
    return []


async def test_the_registration_of_a_node_is_not_needed_to_decide(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    """Whoever reaches the rows may: a node whose life has just ended goes on serving clients."""
    one, two = nodes
    await one.rows.register(Registration(1, UUID(int=1), NodeAddress("host", 1), "1"))
    await two.create("t")
    await one.catches_up()
    assert one.shapes() == {"t": 1}
