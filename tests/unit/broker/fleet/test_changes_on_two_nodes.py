"""Administrators change things on one node and then on another: each change counts on the newest
there is, and nobody hears that another node was faster.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from broker.fleet.catalog.rows import Document
from broker.quotas.table import QuotaTable
from broker.runtime.documents import TRIES, OutOfDate
from broker.security.acl import Acl
from broker.security.delegation.tokens import Wish
from config.resources.kinds import ResourceKind
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType
from protocol.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from protocol.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    Upsertion,
)
from protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.delete_topics import DeleteTopicsRequest
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.errors import ErrorCode
from tests.support.fleet.node_services import FleetNodeWorld, two_nodes
from tests.support.worlds.handler_world import altered

ACL = Acl(
    ResourceType.TOPIC, PatternType.LITERAL, "t", "User:alice", "*",
    AclOperation.READ, AclPermission.ALLOW,
)  # fmt: skip
SET, APPEND = 0, 2
Change = Callable[[FleetNodeWorld, str], Awaitable[None]]


@pytest.fixture
async def nodes() -> Sequence[FleetNodeWorld]:
    return two_nodes(delegation_token_secret_key="secret" * 6)


async def create(node: FleetNodeWorld, *names: str, **settings: str) -> list[int]:
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topics = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
        for name in names
    ]
    answer = await node.call(CreateTopicsRequest(topics=topics), 7)
    return [each.error_code for each in answer.topics]


async def alter(node: FleetNodeWorld, topic: str, key: str, value: str, how: int = SET) -> int:
    resource = altered(ResourceKind.TOPIC, topic, [(key, how, value)])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    code: int = (await node.call(request, 1)).responses[0].error_code
    return code


async def alter_settings(node: FleetNodeWorld, name: str) -> None:
    assert await alter(node, f"of-{name}", "retention.ms", "5000") == 0


async def add_acl(node: FleetNodeWorld, name: str) -> None:
    await node.broker.authority.add([ACL._replace(name=name)])


async def add_user(node: FleetNodeWorld, name: str) -> None:
    upsertion = Upsertion(
        name=name, mechanism=1, iterations=4096, salt=b"salt" * 5, salted_password=b"p" * 32
    )
    request = AlterUserScramCredentialsRequest(upsertions=[upsertion])
    [result] = (await node.call(request, 0)).results
    assert result.error_code == 0, result


async def add_quota(node: FleetNodeWorld, name: str) -> None:
    entity = [EntityData(entity_type="user", entity_name=name)]
    operations = [OpData(key="producer_byte_rate", value=1000.0)]
    request = AlterClientQuotasRequest(entries=[EntryData(entity=entity, ops=operations)])
    [result] = (await node.call(request, 1)).entries
    assert result.error_code == 0, result


async def add_token(node: FleetNodeWorld, name: str) -> None:
    await node.broker.tokens.create(Wish(name, name, (), -1))


async def add_topic(node: FleetNodeWorld, name: str) -> None:
    assert await create(node, name, **{"retention.ms": "6000"}) == [0]


def named(node: FleetNodeWorld) -> set[str]:
    """All names that there are of whatever kind."""
    broker = node.broker
    return (
        {each.name for each in broker.authority.book.acls}
        | {key.user for key in broker.users.rows}
        | {name for entity in broker.quotas.table.entries for _, name in entity}
        | {each.owner for each in broker.tokens.all()}
        | {
            name.removeprefix("of-")
            for name in broker.topics.image.topics
            if "retention.ms" in broker.config.topic_overrides(name)
        }
    )


KINDS = [alter_settings, add_acl, add_user, add_quota, add_token, add_topic]


@pytest.mark.parametrize("change", KINDS)
async def test_one_change_follows_another_on_another_node_at_once(
    nodes: Sequence[FleetNodeWorld], change: Change
) -> None:
    one, two = nodes
    await create(one, "of-first", "of-second", "of-third")
    for node, name in ((one, "first"), (two, "second"), (one, "third")):
        await change(node, name)
    for each in nodes:
        await each.catches_up()
        assert named(each) == {"first", "second", "third"}


class Raced:
    """Has another node's change decided just before each of the next ones of this node."""

    def __init__(self, nodes: Sequence[FleetNodeWorld], change: Change, times: int) -> None:
        self.one, self.two = nodes
        self.change, self.left, self.made = change, times, list[str]()
        self.put = self.two.rows.put_document
        self.one.rows.put_document = self.put_after_the_other  # type: ignore[method-assign]
        self.is_racing = False

    async def put_after_the_other(self, document: Document) -> bool:
        if self.left and not self.is_racing:
            self.left, self.is_racing = self.left - 1, True
            self.made.append(f"two-{self.left}")
            await self.change(self.two, self.made[-1])
            self.is_racing = False
        return await self.put(document)


@pytest.mark.parametrize("change", KINDS)
async def test_two_changes_at_one_time_both_count(
    nodes: Sequence[FleetNodeWorld], change: Change
) -> None:
    one, _ = nodes
    await create(one, "of-one", *(f"of-two-{number}" for number in range(3)))
    race = Raced(nodes, change, 3)
    await change(one, "one")
    assert len(race.made) == 3
    for each in nodes:
        await each.catches_up()
        assert named(each) == {"one", *race.made}


async def test_a_change_that_others_are_always_before_ends(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    race = Raced(nodes, add_acl, 10 * TRIES)
    with pytest.raises(OutOfDate, match="acls were changed on another node"):
        await add_acl(nodes[0], "one")
    assert len(race.made) == TRIES


async def test_of_two_that_make_the_same_topics_each_is_made_once(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    one, two = nodes
    rows = one.rows
    put = rows.create_topics

    async def after_the_other(new: Any) -> Any:
        rows.create_topics = put  # type: ignore[method-assign]
        assert await create(two, "b") == [0]
        return await put(new)

    rows.create_topics = after_the_other  # type: ignore[method-assign]
    assert await create(one, "a", "b", "c") == [0, ErrorCode.TOPIC_ALREADY_EXISTS, 0]
    await two.catches_up()
    assert one.shapes() == two.shapes() == {"a": 1, "b": 1, "c": 1}
    assert [*one.last.services.topics.image.topics] == [*one.shapes()]


async def test_a_topic_is_known_to_whatever_node_changes_it_next(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    """As in Kafka, whose nodes ask their controller."""
    one, two = nodes
    assert await create(one, "t") == [0]
    assert await alter(two, "t", "cleanup.policy", "compact", APPEND) == 0
    assert await create(two, "t") == [ErrorCode.TOPIC_ALREADY_EXISTS]
    more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=3)])
    assert (await one.call(more, 3)).results[0].error_code == 0
    assert one.broker.config.topic_overrides("t") == {"cleanup.policy": "delete,compact"}
    delete = DeleteTopicsRequest(topic_names=["t"])
    assert (await two.call(delete, 5)).responses[0].error_code == 0
    assert await alter(one, "t", "retention.ms", "1") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_that_is_judged_again_is_counted_once(
    nodes: Sequence[FleetNodeWorld],
) -> None:
    """By the quota of partitions that a client may make."""
    one, _ = nodes
    table = QuotaTable({(("user", None),): {"controller_mutation_rate": 0.1}})
    async with one.broker.quotas.changing:
        await one.broker.quotas.store(table)
    race = Raced(nodes, add_topic, 3)
    counted: list[int] = []
    allowance = one.broker.quotas.allowance

    def watched(*args: Any, **how: Any) -> Any:
        given = allowance(*args, **how)
        take = given.take
        given.take = lambda count: (counted.append(count), take(count))
        return given

    one.broker.quotas.allowance = watched
    await add_topic(one, "one")
    assert len(race.made) == 3
    assert counted == [1]


async def test_the_version_rises_with_each_change(nodes: Sequence[FleetNodeWorld]) -> None:
    one, _ = nodes
    seen = [await one.rows.version()]
    for change in (add_acl, add_topic):
        await change(one, "one")
        seen.append(await one.rows.version())
    assert seen == sorted(set(seen))
