"""The declared keys: Kafka's names, defaults and bounds, each edge of them."""

import pytest

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.names import BROKER_KEYS, TOPIC_KEYS, broker_name, topic_name
from config.quantities import LONG_MAX
from config.topic import TopicConfig

INT = 2**31 - 1
# semantics.md 11 and 6.1: topic key, key of its default on the broker, Kafka's default
DEFAULTS = [
    ("cleanup.policy", "log.cleanup.policy", frozenset({"delete"})),
    ("segment.bytes", "log.segment.bytes", 1_073_741_824),
    ("segment.ms", "log.roll.ms", 604_800_000),
    ("segment.jitter.ms", "log.roll.jitter.ms", 0),
    ("segment.index.bytes", "log.index.size.max.bytes", 10_485_760),
    ("index.interval.bytes", "log.index.interval.bytes", 4096),
    ("retention.ms", "log.retention.ms", 604_800_000),
    ("retention.bytes", "log.retention.bytes", -1),
    ("file.delete.delay.ms", "log.segment.delete.delay.ms", 60_000),
    ("flush.messages", "log.flush.interval.messages", LONG_MAX),
    ("flush.ms", "log.flush.interval.ms", LONG_MAX),
    ("max.message.bytes", "message.max.bytes", 1_048_588),
    ("message.timestamp.type", "log.message.timestamp.type", "CreateTime"),
    ("message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms", LONG_MAX),
    ("message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms", 3_600_000),
    ("min.insync.replicas", "min.insync.replicas", 1),
    ("local.retention.ms", "log.local.retention.ms", -2),
    ("local.retention.bytes", "log.local.retention.bytes", -2),
]
WITHOUT_BROKER_DEFAULT = {
    "remote.storage.enable",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "errors.deadletterqueue.group.enable",
}
# name on a topic, lowest and highest number that is accepted
TOPIC_EDGES = [
    ("file.delete.delay.ms", 0, LONG_MAX),
    ("flush.messages", 1, LONG_MAX),
    ("flush.ms", 0, LONG_MAX),
    ("index.interval.bytes", 0, INT),
    ("internal.segment.bytes", 1, INT),
    ("max.decompressed.message.bytes", 1, INT),
    ("max.message.bytes", 0, INT),
    ("max.message.time.difference.ms", 0, LONG_MAX),
    ("message.timestamp.difference.max.ms", 0, LONG_MAX),
    ("message.timestamp.after.max.ms", 0, LONG_MAX),
    ("message.timestamp.before.max.ms", 0, LONG_MAX),
    ("min.insync.replicas", 1, INT),
    ("local.retention.bytes", -2, LONG_MAX),
    ("local.retention.ms", -2, LONG_MAX),
    ("retention.ms", -1, LONG_MAX),
    ("segment.bytes", 1_048_576, INT),
    ("segment.index.bytes", 4, INT),
    ("segment.jitter.ms", 0, LONG_MAX),
    ("segment.ms", 1, LONG_MAX),
]
BROKER_EDGES = [
    ("log.roll.hours", 1, INT),
    ("log.roll.jitter.hours", 0, INT),
    ("log.segment.bytes", 1_048_576, INT),
    ("message.max.bytes", 0, INT),
    ("node.id", 0, INT),
    ("num.partitions", 1, INT),
    ("fetch.max.bytes", 1024, INT),
    ("max.connections", 1, INT),
    ("max.connections.per.ip", 1, INT),
    ("listener.name.internal.max.connections", 1, INT),
    ("horolog.tier.cache.bytes", 1_048_576, LONG_MAX),
    ("log.local.retention.bytes", -2, LONG_MAX),
    ("log.local.retention.ms", -2, LONG_MAX),
    ("remote.fetch.max.wait.ms", 1, INT),
    ("remote.list.offsets.request.timeout.ms", 1, LONG_MAX),
    ("remote.log.manager.copier.thread.pool.size", 1, INT),
    ("remote.log.manager.copy.max.bytes.per.second", 1, LONG_MAX),
    ("remote.log.manager.expiration.thread.pool.size", 1, INT),
    ("remote.log.manager.fetch.max.bytes.per.second", 1, LONG_MAX),
    ("remote.log.manager.task.interval.ms", 1, LONG_MAX),
    ("remote.log.reader.max.pending.tasks", 1, INT),
    ("remote.log.reader.threads", 1, INT),
]


@pytest.mark.parametrize(("name", "broker", "default"), DEFAULTS)
def test_a_topic_key_has_the_default_and_the_broker_key_of_kafka(
    name: str, broker: str, default: object
) -> None:
    (key,) = topic_name(name).keys
    assert key.broker_name == broker
    assert getattr(TopicConfig(), key.attribute) == default
    assert key in broker_name(broker).keys


@pytest.mark.parametrize(("name", "low", "high"), TOPIC_EDGES)
def test_a_topic_key_takes_its_bounds_and_nothing_beyond(name: str, low: int, high: int) -> None:
    _check_edges(topic_name(name).parse, low, high)


@pytest.mark.parametrize(("name", "low", "high"), BROKER_EDGES)
def test_a_broker_key_takes_its_bounds_and_nothing_beyond(name: str, low: int, high: int) -> None:
    _check_edges(broker_name(name).parse, low, high)


def _check_edges(parse, low: int, high: int) -> None:
    assert parse(str(low))[1] == str(low)
    assert parse(str(high))[1] == str(high)
    for beyond in (low - 1, high + 1):
        with pytest.raises(ConfigError, match="out of bounds") as refused:
            parse(str(beyond))
        assert str(low) in refused.value.message, "the bound that was passed is named"
        assert str(high) in refused.value.message


@pytest.mark.parametrize("key", [*TOPIC_KEYS, *BROKER_KEYS], ids=lambda key: key.name)
def test_a_default_is_a_value_that_the_key_itself_would_take(key) -> None:
    assert key.type.parse(key.default_text) == key.default
    assert key.type.canonical(key.default_text) == key.default_text
    for spelling in (*key.on_topic, *key.on_broker):
        assert spelling.type.kafka_type in (key.kafka_type, spelling.type.kafka_type)


@pytest.mark.parametrize("key", [*TOPIC_KEYS, *BROKER_KEYS], ids=lambda key: key.name)
def test_a_key_says_what_it_does(key) -> None:
    assert key.doc.endswith(".")
    assert "|" not in key.doc
    assert len(key.doc) < 200


@pytest.mark.parametrize("key", TOPIC_KEYS, ids=lambda key: key.name)
def test_a_topic_setting_is_an_attribute_by_the_same_name_and_has_a_broker_default(key) -> None:
    assert key.attribute == key.name.replace(".", "_")
    assert bool(key.on_broker) == (key.name not in WITHOUT_BROKER_DEFAULT)
    assert key.dynamic


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TopicConfig().retention_ms = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        BrokerConfig().node_id = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("retention.m", "retention.ms"),
        ("segment.byte", "segment.bytes"),
        ("cleanup_policy", "cleanup.policy"),
        ("log.retention.ms", "retention.ms"),
        ("horolog.durabilty", "horolog.durability"),
    ],
)
def test_an_unknown_topic_key_is_told_the_one_that_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError) as refused:
        topic_name(name)
    assert meant in str(refused.value)
    assert refused.value.key == name


def test_a_name_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ConfigError, match=r"is not a known setting$"):
        topic_name("zzz")


def test_a_topic_key_on_the_broker_is_told_its_name_there() -> None:
    with pytest.raises(ConfigError, match=r"log\.roll\.ms"):
        broker_name("segment.ms")


@pytest.mark.parametrize(
    ("find", "name"),
    [
        (topic_name, "message.format.version"),
        (broker_name, "security.providers"),
        (broker_name, "zookeeper.connect"),
    ],
)
def test_a_key_that_only_kafka_serves_is_not_called_unknown(find, name: str) -> None:
    with pytest.raises(ConfigError, match="known to Kafka, not served by this version: "):
        find(name)


@pytest.mark.parametrize("name", sorted(WITHOUT_BROKER_DEFAULT))
def test_a_key_of_topics_alone_is_refused_on_the_broker(name: str) -> None:
    with pytest.raises(ConfigError, match=r"setting of topics, without a default on the broker$"):
        broker_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "remote.log.storage.manager.class.name",
        "remote.log.storage.manager.impl.prefix",
        "rsm.config.dir",
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        "remote.log.metadata.manager.listener.name",
        "remote.log.metadata.custom.metadata.max.bytes",
        "remote.log.manager.copy.quota.window.num",
        "remote.log.manager.fetch.quota.window.size.seconds",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.manager.thread.pool.size",
        "remote.log.manager.task.retry.backoff.ms",
    ],
)
def test_a_key_of_kafkas_tier_that_has_no_effect_may_stay_in_a_file(name: str) -> None:
    from config.foreign.known import why_ignored

    assert why_ignored(name, "1")


def test_no_served_key_is_listed_as_not_served() -> None:
    from config.foreign.known import (
        why_broker_key_is_not_served,
        why_ignored,
        why_topic_key_is_not_served,
    )

    for key in (*TOPIC_KEYS, *BROKER_KEYS):
        assert not any(why_topic_key_is_not_served(each.name) for each in key.on_topic)
        assert not any(why_broker_key_is_not_served(each.name) for each in key.on_broker)
        assert not any(why_ignored(each.name, key.default_text) for each in key.on_broker)
