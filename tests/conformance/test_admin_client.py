"""confluent-kafka's AdminClient: topics, partitions, settings, deletions, the cluster."""

import pytest
from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import samples
from tests.conformance.test_confluent_client import produce

EXERCISES = {
    "confluent-kafka": "administration",
}


def settings_of(admin: AdminClient, topic: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    answer: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(30)
    return answer


def test_a_topic_is_described_as_it_was_made(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=5)
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(30)
    assert [partition.id for partition in described.partitions] == list(range(5))
    assert {partition.leader.id for partition in described.partitions} == {
        node.id for node in admin.describe_cluster().result(30).nodes
    }
    assert not described.is_internal


def test_a_topic_is_made_once(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def test_a_trial_creation_makes_nothing(admin: AdminClient) -> None:
    admin.create_topics([NewTopic("only-asking", 1, 1)], validate_only=True)["only-asking"].result(
        30
    )
    assert "only-asking" not in admin.list_topics(timeout=30).topics


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 250])
def test_a_bad_name_is_refused(admin: AdminClient, name: str) -> None:
    with pytest.raises(KafkaException, match="TOPIC_EXCEPTION"):
        admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)


def test_a_bad_setting_is_refused(admin: AdminClient) -> None:
    wrong = NewTopic("with-bad-setting", 1, 1, config={"segment.bytes": "a lot"})
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        admin.create_topics([wrong])["with-bad-setting"].result(30)


def test_more_copies_than_nodes_are_refused(admin: AdminClient) -> None:
    with pytest.raises(KafkaException, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topics([NewTopic("three-copies", 1, 3)])["three-copies"].result(30)


def test_partitions_are_added_and_never_taken(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    admin.create_partitions([NewPartitions(topic, 6)])[topic].result(30)
    assert len(admin.list_topics(topic, timeout=30).topics[topic].partitions) == 6
    with pytest.raises(KafkaException, match="INVALID_PARTITIONS"):
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)


def test_settings_are_altered_one_by_one(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic(retention_ms="1000000", segment_bytes="2000000")
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.ms", "2000000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("segment.bytes", None, incremental_operation=AlterConfigOpType.DELETE),
        ],
    )
    admin.incremental_alter_configs([change])[change].result(30)
    settings = settings_of(admin, topic)
    assert settings["retention.ms"].value == "2000000"
    assert settings["segment.bytes"].value == "1073741824"
    assert settings["segment.bytes"].is_default
    assert not settings["retention.ms"].is_default


def test_an_unknown_setting_is_refused(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    change = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry("retention.mss", "1", incremental_operation=AlterConfigOpType.SET)
        ],
    )
    with pytest.raises(KafkaException, match="INVALID_CONFIG"):
        admin.incremental_alter_configs([change])[change].result(30)


def test_records_are_deleted_from_the_front(
    bootstrap: str, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    produce(bootstrap, topic, samples(100))
    cut = TopicPartition(topic, 0, 40)
    assert admin.delete_records([cut])[cut].result(30).low_watermark == 40
    partition = TopicPartition(topic, 0)
    earliest = admin.list_offsets({partition: OffsetSpec.earliest()})[partition].result(30)
    assert earliest.offset == 40


def test_a_deleted_topic_is_gone_and_its_name_is_free(admin: AdminClient) -> None:
    name = "short-lived"
    for _ in range(2):
        admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
        admin.delete_topics([name])[name].result(30)
        assert name not in admin.list_topics(timeout=30).topics
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        admin.delete_topics([name])[name].result(30)


def test_the_broker_describes_its_settings(admin: AdminClient) -> None:
    (node,) = admin.describe_cluster().result(30).nodes
    resource = ConfigResource(ConfigResource.Type.BROKER, str(node.id))
    settings = admin.describe_configs([resource])[resource].result(30)
    assert settings["log.segment.bytes"].value == "1073741824"
    assert settings["node.id"].is_read_only
