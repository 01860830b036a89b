"""Hostile names, numbers, settings and times in requests about topics, sent to a process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.apis import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    describe_configs,
    incremental_alter_configs,
    list_offsets,
)
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.errors import ErrorCode as Code
from tests.support.clients.wire import WireClient
from tests.support.worlds.watched_broker import WatchedBroker, produce_to, small_batch

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
TOPIC, BROKER = 2, 4


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("bad") / "data") as broker:
        broker.make_topic("t")
        for name in ("dirty", "extreme"):
            broker.make_topic(name, message_timestamp_after_max_ms=str(INT64_MAX))
        yield broker
        broker.check_counters()


@pytest.fixture
def broker(shared: WatchedBroker) -> Iterator[WatchedBroker]:
    yield shared
    shared.check_unharmed()


@pytest.fixture
def client(broker: WatchedBroker) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


HOSTILE_NAMES = [
    "",
    ".",
    "..",
    "../evil",
    "/etc/evil",
    "a/b",
    "a\\b",
    "a\0b",
    "a b",
    "a\nb",
    "é",
    "\u202etxt",
    "t\u043f",
    "%2e%2e%2f",
    "$(reboot)",
    "a" * 250,
    "a" * 30_000,
    "__consumer_offsets",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_hostile_names_become_no_topic(
    broker: WatchedBroker, client: WireClient, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    for version in (2, 5, 7):
        request = create_topics.CreateTopicsRequest(topics=[topic])
        (answer,) = client.call(request, version).topics
        assert answer.error_code == Code.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(
        topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
    )
    (told,) = client.call(asked, 9).topics
    assert told.error_code
    assert not list(tmp_path_factory.getbasetemp().glob("**/*evil*"))


def test_a_name_of_249_characters_is_served_and_deleted(client: WireClient) -> None:
    name = "n" * 249
    topic = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = create_topics.CreateTopicsRequest(topics=[topic])
    assert client.call(request, 7).topics[0].error_code == 0
    assert produce_to(client, small_batch(), topic=name).error_code == 0
    gone = delete_topics.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000)
    assert client.call(gone, 5).responses[0].error_code == 0


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"replication_factor": 3}, Code.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": 0}, Code.INVALID_REPLICATION_FACTOR),
        ({"replication_factor": -2}, Code.INVALID_REPLICATION_FACTOR),
        ({"num_partitions": 0}, Code.INVALID_PARTITIONS),
        ({"num_partitions": -7}, Code.INVALID_PARTITIONS),
        ({"num_partitions": 1_000_000}, Code.POLICY_VIOLATION),
        ({"num_partitions": 2**31 - 1}, Code.POLICY_VIOLATION),
        ({"configs": {"no.such.key": "1"}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": "-2"}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": "9" * 40}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": "9" * 5000}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": "abc"}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": ""}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": "\0"}}, Code.INVALID_CONFIG),
        ({"configs": {"retention.ms": "١٢"}}, Code.INVALID_CONFIG),
        ({"configs": {"segment.bytes": "0"}}, Code.INVALID_CONFIG),
        ({"configs": {"cleanup.policy": "burn"}}, Code.INVALID_CONFIG),
        ({"configs": {"compression.type": "zip"}}, Code.INVALID_CONFIG),
        ({"configs": {"max.message.bytes": "-1"}}, Code.INVALID_CONFIG),
    ],
)
def test_impossible_topics_are_refused(
    client: WireClient, fields: dict[str, object], code: Code
) -> None:
    settings = dict(fields.pop("configs", {}))  # type: ignore[call-overload]
    configs = [
        create_topics.CreatableTopicConfig(name=name, value=value)
        for name, value in settings.items()
    ]
    described = {"num_partitions": 1, "replication_factor": 1, **fields, "configs": configs}
    topic = create_topics.CreatableTopic(name="impossible", **described)
    (answer,) = client.call(create_topics.CreateTopicsRequest(topics=[topic]), 7).topics
    assert Code(answer.error_code) is code, answer
    fields.update({"configs": settings} if settings else {})


def test_partitions_without_end_are_refused(client: WireClient) -> None:
    for count in (1_000_000, 2**31 - 1, -5, 0, 1):
        topic = create_partitions.CreatePartitionsTopic(name="t", count=count)
        request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=1000)
        (answer,) = client.call(request, 3).results
        assert answer.error_code in {Code.POLICY_VIOLATION, Code.INVALID_PARTITIONS}


def test_15_000_topics_in_one_request_hold_nobody_up(
    broker: WatchedBroker, client: WireClient
) -> None:
    topics = [
        create_topics.CreatableTopic(name=f"many_{number}", num_partitions=1, replication_factor=1)
        for number in range(15_000)
    ]
    request = create_topics.CreateTopicsRequest(topics=topics, validate_only=True)
    sent = client.send(request, 4)
    broker.check_unharmed()
    answers = client.receive(*sent).topics
    codes = [answer.error_code for answer in answers]
    assert len(answers) == 15_000
    assert codes[0] == 0
    assert codes[-1] == Code.POLICY_VIOLATION


SETTINGS = [
    ("retention.ms", "-2"),
    ("retention.ms", "x" * 20_000),
    ("no.such.key", "1"),
    ("", ""),
    ("segment.bytes", "1"),
    ("max.message.bytes", str(2**31)),
    ("message.timestamp.type", "Whenever"),
]


@pytest.mark.parametrize(("name", "value"), SETTINGS, ids=range(len(SETTINGS)))
@pytest.mark.parametrize(("kind", "resource"), [(TOPIC, "t"), (BROKER, "1"), (BROKER, "")])
def test_settings_out_of_bounds_change_nothing(
    client: WireClient, kind: int, resource: str, name: str, value: str
) -> None:
    before = described(client, kind, resource or "1")
    altered = incremental_alter_configs.AlterableConfig(name=name, config_operation=0, value=value)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=kind, resource_name=resource, configs=[altered]
            )
        ]
    )
    (answer,) = client.call(request, 1).responses
    assert answer.error_code in {Code.INVALID_CONFIG, Code.INVALID_REQUEST}, answer
    old = alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=kind,
                resource_name=resource,
                configs=[alter_configs.AlterableConfig(name=name, value=value)],
            )
        ]
    )
    (answer,) = client.call(old, 2).responses
    assert answer.error_code in {Code.INVALID_CONFIG, Code.INVALID_REQUEST}, answer
    assert described(client, kind, resource or "1") == before


def described(client: WireClient, kind: int, name: str) -> list[tuple[str, str | None]]:
    request = describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
        ]
    )
    (result,) = client.call(request, 4).results
    assert result.error_code == 0
    return [(each.name, each.value) for each in result.configs]


@pytest.mark.parametrize("kind", [0, 1, 8, 64, 127, -1])
def test_resources_that_are_not_there_are_refused(client: WireClient, kind: int) -> None:
    request = describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=kind, resource_name="t", configuration_keys=None
            )
        ]
    )
    (result,) = client.call(request, 4).results
    assert result.error_code == Code.INVALID_REQUEST


# -- times and offsets


@pytest.mark.parametrize("version", [1, 7, 11])
@pytest.mark.parametrize(
    "timestamp", [INT64_MIN, INT64_MIN + 1, -1000, -7, -6, -5, -4, -3, -2, -1, 0, 1, INT64_MAX]
)
@pytest.mark.parametrize("topic", ["t", "dirty"])
def test_any_time_is_answered(client: WireClient, topic: str, timestamp: int, version: int) -> None:
    produce_to(client, small_batch(), topic=topic)
    query = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = [list_offsets.ListOffsetsTopic(name=topic, partitions=[query])]
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)
    (answer,) = client.call(request, version).topics[0].partitions
    assert answer.error_code in {0, Code.UNSUPPORTED_VERSION}
    if timestamp in {0, 1}:
        assert (answer.error_code, answer.offset) == (0, 0)
    if timestamp == INT64_MAX:
        assert (answer.error_code, answer.offset) == (0, -1)


def test_records_with_extreme_times_are_stored_and_found(client: WireClient) -> None:
    from protocol.records.builder import build_batch

    for at in (INT64_MAX, 0):
        answer = produce_to(client, build_batch([(at, None, b"v")]), topic="extreme")
        assert answer.error_code == 0, answer
    spread = build_batch([(0, None, b"v"), (INT64_MAX, None, b"v")])
    assert produce_to(client, spread, topic="extreme").error_code in {0, Code.INVALID_RECORD}
    query = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=INT64_MAX)
    topics = [list_offsets.ListOffsetsTopic(name="extreme", partitions=[query])]
    request = list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)
    (found,) = client.call(request, 7).topics[0].partitions
    assert (found.error_code, found.timestamp) == (0, INT64_MAX)


@pytest.mark.parametrize(
    ("offset", "code"),
    [
        (INT64_MAX, Code.OFFSET_OUT_OF_RANGE),
        (INT64_MIN, Code.OFFSET_OUT_OF_RANGE),
        (-2, Code.OFFSET_OUT_OF_RANGE),
    ],
)
def test_records_beyond_the_log_cannot_be_deleted(
    client: WireClient, offset: int, code: Code
) -> None:
    partition = delete_records.DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [delete_records.DeleteRecordsTopic(name="t", partitions=[partition])]
    request = delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=-1)
    (answer,) = client.call(request, 2).topics[0].partitions
    assert answer.error_code == code


def test_nothing_lies_outside_of_the_data_directory(broker: WatchedBroker) -> None:
    above = Path(broker.process.log).parent
    assert {path.name for path in above.iterdir()} == {"data", "data.log"}
