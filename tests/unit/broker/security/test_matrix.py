"""The matrix of authorization: every API refuses, in every version, what nobody allows.

Codes are those of Kafka 4.3 (KafkaApis, ControllerApis, AclApis).
"""

from collections.abc import Callable
from typing import Any

import pytest

from broker.daemon.routes import served
from broker.runtime.principals import ANONYMOUS
from broker.runtime.rights import REFUSED
from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from broker.security.authority import AclRights
from broker.security.matrix import MATRIX, marks_of
from protocol.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from tests.support.clients.sample_requests import Named, codes_in, request_of, texts_in
from tests.support.worlds.handler_world import World
from tests.support.worlds.transaction_world import PromptCommit

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TOPIC, GROUP, CLUSTER, TRANSACTION = 29, 30, 31, 53
NO_TOKENS_HERE = 64
"""Nobody may ask for delegation tokens in the clear; more in delegation/test_token_apis.py."""
DENIALS = {TOPIC, GROUP, CLUSTER, TRANSACTION}
CODES = {
    **dict.fromkeys(
        ("Produce", "Fetch", "ListOffsets", "Metadata", "CreateTopics", "DeleteTopics",
         "DeleteRecords", "OffsetForLeaderEpoch", "DescribeConfigs", "AlterConfigs",
         "IncrementalAlterConfigs", "CreatePartitions", "DescribeProducers",
         "DescribeTopicPartitions"), TOPIC,
    ),
    **dict.fromkeys(
        ("OffsetCommit", "OffsetFetch", "FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup",
         "SyncGroup", "DescribeGroups", "DeleteGroups", "OffsetDelete", "ConsumerGroupHeartbeat",
         "ConsumerGroupDescribe", "ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch",
         "ShareAcknowledge", "StreamsGroupHeartbeat", "StreamsGroupDescribe",
         "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets"), GROUP,
    ),
    **dict.fromkeys(
        ("WriteTxnMarkers", "DescribeAcls", "CreateAcls", "DeleteAcls", "DescribeLogDirs",
         "ElectLeaders", "AlterPartitionReassignments", "AlterReplicaLogDirs", "DescribeQuorum",
         "ListPartitionReassignments", "UpdateFeatures",
         "DescribeClientQuotas", "AlterClientQuotas", "AlterUserScramCredentials",
         "DescribeUserScramCredentials", "ListConfigResources", "InitializeShareGroupState",
         "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState",
         "ReadShareGroupStateSummary"), CLUSTER,
    ),
    **dict.fromkeys(
        ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit",
         "DescribeTransactions"), TRANSACTION,
    ),
    **dict.fromkeys(
        ("CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
         "DescribeDelegationToken"), NO_TOKENS_HERE,
    ),
}  # fmt: skip
SILENT = {"ListGroups", "ListTransactions"}
"""They leave out what may not be described."""
OPEN = {
    "ApiVersions", "DescribeCluster", "GetTelemetrySubscriptions", "PushTelemetry",
    "SaslAuthenticate", "SaslHandshake",
}  # fmt: skip
PAIRS = [
    (api, version)
    for api, _ in served()
    for version in range(api.min_version, api.max_version + 1)
    if api.name not in OPEN
]
ids = [f"{api.name}-{version}" for api, version in PAIRS]
Allow = Callable[..., None]


class PromptWorld(World):
    """What is written is on the disk at once."""

    commit_kind = PromptCommit


def allowed(kind: ResourceType, name: str, operation: AclOperation) -> Acl:
    return Acl(
        kind, PatternType.LITERAL, name, "User:ANONYMOUS", "*", operation, AclPermission.ALLOW
    )


@pytest.fixture
async def world() -> World:
    """With a topic, which was made before anybody asked for rights."""
    made = PromptWorld(authorizer_class_name=STANDARD)
    await made.make_topic("t")
    return made


def limited_to(world: World, *acls: Acl) -> Named:
    """The client has these rights from now on; the names of what there is."""
    authority = world.broker.authority
    authority.book = AclBook(acls)
    world.rights = AclRights(authority, ANONYMOUS, "10.0.0.9")
    return Named(topic_id=world.broker.topics.image.topics["t"].topic_id)


async def ask(world: World, api: Any, version: int, named: Named) -> Any:
    return await world.call(request_of(api, version, named), version)


def expected(name: str, version: int) -> set[int]:
    if name == "AddPartitionsToTxn" and version >= 4:
        return {CLUSTER}
    if name in SILENT or (name == "DescribeLogDirs" and version < 3):
        return set()
    return {CODES[name]}


@pytest.mark.parametrize(("api", "version"), PAIRS, ids=ids)
async def test_nothing_is_allowed_without_an_entry(world: World, api: Any, version: int) -> None:
    answer = await ask(world, api, version, limited_to(world))
    assert set(codes_in(answer)) == expected(api.name, version)


@pytest.mark.parametrize(("api", "version"), PAIRS, ids=ids)
async def test_a_right_to_another_resource_is_none(world: World, api: Any, version: int) -> None:
    others = [
        allowed(kind, "other", AclOperation.ALL)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ]
    answer = await ask(world, api, version, limited_to(world, *others))
    assert set(codes_in(answer)) == expected(api.name, version)


@pytest.mark.parametrize(("api", "version"), PAIRS, ids=ids)
async def test_what_is_hidden_is_answered_as_what_is_missing(
    world: World, api: Any, version: int
) -> None:
    named = limited_to(world)
    hidden = await ask(world, api, version, named)
    missing = await ask(world, api, version, named._replace(topic="n"))
    if "n" in set(texts_in(missing)) and named.topic_id.int not in _ids_in(missing):
        assert list(codes_in(hidden)) == list(codes_in(missing))


def _ids_in(answer: Any) -> set[int]:
    return {each.int for each in _uuids(answer)}


def _uuids(answer: Any) -> list[Any]:
    topics = getattr(answer, "topics", None) or getattr(answer, "responses", None) or []
    return [each.topic_id for each in topics if hasattr(each, "topic_id")]


@pytest.mark.parametrize(("api", "version"), PAIRS, ids=ids)
async def test_all_rights_are_refused_nothing(world: World, api: Any, version: int) -> None:
    every = [
        allowed(ResourceType.TOPIC, "t", AclOperation.ALL),
        allowed(ResourceType.GROUP, "g", AclOperation.ALL),
        allowed(ResourceType.TRANSACTIONAL_ID, "x", AclOperation.ALL),
        allowed(ResourceType.CLUSTER, CLUSTER_NAME, AclOperation.ALL),
    ]
    answer = await ask(world, api, version, limited_to(world, *every))
    assert DENIALS & set(codes_in(answer)) == set()


@pytest.mark.parametrize(("api", "version"), PAIRS, ids=ids)
async def test_one_of_the_rights_of_its_row_was_asked_for(
    world: World, api: Any, version: int
) -> None:
    limited_to(world)
    await ask(world, api, version, Named())
    assert world.last.asked & (marks_of(api.name) | REFUSED)


@pytest.mark.parametrize(("api", "version"), PAIRS, ids=ids)
async def test_a_request_about_nothing_asks_for_them_too(
    world: World, api: Any, version: int
) -> None:
    limited_to(world)
    answer = world.begin(api.request(), version)
    await world.settled(answer)
    assert world.last.asked & (marks_of(api.name) | REFUSED)


def test_there_is_a_row_for_each_api_that_is_served_and_no_other() -> None:
    assert MATRIX.keys() == {api.name for api, _ in served()}


def test_an_api_without_a_row_is_not_served() -> None:
    with pytest.raises(LookupError, match="NoSuchApi has no row"):
        marks_of("NoSuchApi")
