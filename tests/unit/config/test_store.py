"""Layers at run time: overrides of topics and brokers, their changes, and what is reported."""

from dataclasses import replace

import pytest

from config.alter import Alteration, Operation
from config.errors import ConfigError, ConfigRequestError, NotServedError
from config.layers import SettingSource
from config.quantities import LONG_MAX
from config.sources import load
from config.store import ConfigStore
from config.topic import TopicConfig

SET, DELETE, APPEND, SUBTRACT = Operation


def store_with(*flags: str) -> ConfigStore:
    """As a file would set them."""
    layers = load(flags=flags, environment={}).layers
    return ConfigStore([replace(each, pinned=False) for each in layers])


def alter(store: ConfigStore, topic: str, *changes: tuple[str, Operation, str | None]) -> None:
    store.commit(store.prepare_topic_alteration(topic, [Alteration(*each) for each in changes]))


def alter_broker(store: ConfigStore, node: str, *changes: tuple[str, Operation, str]) -> None:
    store.commit(store.prepare_broker_alteration(node, [Alteration(*each) for each in changes]))


def entry(store: ConfigStore, topic: str, name: str):
    (found,) = store.describe_topic(topic, [name])
    return found


def test_a_topic_without_overrides_has_the_settings_of_the_broker() -> None:
    store = store_with("log.retention.ms=5")
    assert store.topic_config("any") == TopicConfig(retention_ms=5)
    assert store.topic_config("any") is store.topic_config("other")


def test_each_layer_wins_over_the_one_below_and_its_removal_brings_that_back() -> None:
    store = store_with("log.retention.ms=4")
    seen = [store.topic_config("t").retention_ms]
    alter_broker(store, "", ("log.retention.ms", SET, "3"))
    seen.append(store.topic_config("t").retention_ms)
    alter_broker(store, "1", ("log.retention.ms", SET, "2"))
    seen.append(store.topic_config("t").retention_ms)
    alter(store, "t", ("retention.ms", SET, "1"))
    seen.append(store.topic_config("t").retention_ms)
    synonyms = entry(store, "t", "retention.ms").synonyms
    assert [(each.name, each.value, each.source) for each in synonyms] == [
        ("retention.ms", "1", SettingSource.TOPIC),
        ("log.retention.ms", "2", SettingSource.DYNAMIC_BROKER),
        ("log.retention.ms", "3", SettingSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.ms", "4", SettingSource.STATIC_BROKER),
        ("log.retention.ms", "604800000", SettingSource.DEFAULT),
    ]
    alter(store, "t", ("retention.ms", DELETE, None))
    seen.append(store.topic_config("t").retention_ms)
    alter_broker(store, "1", ("log.retention.ms", DELETE, ""))
    seen.append(store.topic_config("t").retention_ms)
    alter_broker(store, "", ("log.retention.ms", DELETE, ""))
    seen.append(store.topic_config("t").retention_ms)
    assert seen == [4, 3, 2, 1, 2, 3, 4]


def test_the_sources_carry_the_numbers_of_the_wire() -> None:
    assert [source.value for source in SettingSource] == [1, 2, 3, 4, 5, 7, 8]
    assert [operation.value for operation in Operation] == [0, 1, 2, 3]


def test_a_snapshot_is_the_same_object_until_something_changes() -> None:
    store = store_with()
    store.set_topic("t", {"retention.ms": "1"})
    before = store.topic_config("t")
    store.set_topic("other", {"retention.ms": "2"})
    assert store.topic_config("t") is before
    store.set_topic("t", {"retention.ms": "3"})
    assert store.topic_config("t").retention_ms == 3
    assert before.retention_ms == 1


@pytest.mark.parametrize(
    "alias", ["max.message.time.difference.ms", "message.timestamp.difference.max.ms"]
)
def test_an_alias_sets_both_timestamp_bounds_and_an_explicit_bound_wins(alias: str) -> None:
    store = store_with()
    store.set_topic("t", {alias: "10s"})
    config = store.topic_config("t")
    assert config.message_timestamp_before_max_ms == 10_000
    assert config.message_timestamp_after_max_ms == 10_000
    store.set_topic("t", {alias: "10s", "message.timestamp.after.max.ms": "5"})
    config = store.topic_config("t")
    assert config.message_timestamp_before_max_ms == 10_000
    assert config.message_timestamp_after_max_ms == 5
    shown = entry(store, "t", "message.timestamp.before.max.ms")
    assert (shown.value, shown.source, shown.synonyms[0].name) == (
        "10000",
        SettingSource.TOPIC,
        alias,
    )
    assert entry(store, "t", alias).value == "10000"
    alter(store, "t", (alias, DELETE, None))
    assert store.topic_config("t").message_timestamp_before_max_ms == LONG_MAX
    assert store.describe_topic("t", [alias]) == []


def test_an_alias_on_the_broker_is_below_a_bound_on_the_topic() -> None:
    store = store_with("log.message.timestamp.difference.max.ms=7")
    assert store.topic_defaults.message_timestamp_after_max_ms == 7
    store.set_topic("t", {"message.timestamp.after.max.ms": "9"})
    assert store.topic_config("t").message_timestamp_after_max_ms == 9
    assert store.topic_config("t").message_timestamp_before_max_ms == 7


def test_segments_can_be_tiny_by_the_internal_key_only() -> None:
    store = store_with()
    with pytest.raises(ConfigError):
        store.set_topic("t", {"segment.bytes": "100"})
    store.set_topic("t", {"internal.segment.bytes": "100", "segment.bytes": "2MiB"})
    assert store.topic_config("t").segment_bytes == 100


def test_append_begins_with_the_value_of_the_broker() -> None:
    store = store_with("log.cleanup.policy=compact")
    alter(store, "t", ("cleanup.policy", APPEND, "delete"))
    assert entry(store, "t", "cleanup.policy").value == "compact,delete"
    alter(store, "t", ("cleanup.policy", APPEND, "delete"))
    assert entry(store, "t", "cleanup.policy").value == "compact,delete"
    alter(store, "t", ("cleanup.policy", SUBTRACT, "compact"))
    assert store.topic_config("t").cleanup_policy == {"delete"}
    alter(store, "t", ("cleanup.policy", SUBTRACT, "delete,compact"))
    assert store.topic_config("t").cleanup_policy == frozenset()


def test_subtract_without_an_override_takes_from_the_value_of_the_broker() -> None:
    store = store_with()
    alter_broker(store, "", ("log.cleanup.policy", APPEND, "compact"))
    alter(store, "t", ("cleanup.policy", SUBTRACT, "delete"))
    assert store.topic_config("t").cleanup_policy == {"compact"}
    assert store.topic_defaults.cleanup_policy == {"delete", "compact"}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("retention.ms", APPEND, "1"), ConfigError),
        (("retention.ms", SUBTRACT, "1"), ConfigError),
        (("retention.ms", SET, None), ConfigRequestError),
        (("cleanup.policy", APPEND, None), ConfigRequestError),
        (("cleanup.policy", APPEND, "keep"), ConfigError),
        (("no.such.key", SET, "1"), ConfigError),
        (("message.format.version", SET, "3.0"), NotServedError),
        (("retention.ms", SET, "-2"), ConfigError),
    ],
)
def test_a_refused_change_leaves_no_trace(change, error: type[ConfigError]) -> None:
    store = store_with()
    store.set_topic("t", {"segment.ms": "5"})
    before = store.serialise()
    with pytest.raises(error) as refused:
        alter(store, "t", ("segment.ms", SET, "6"), change)
    assert refused.type is error
    assert store.serialise() == before
    assert store.topic_config("t").segment_ms == 5


@pytest.mark.parametrize("name", ["retention.ms", "node.id", "message.format.version", "no.such"])
def test_taking_back_what_is_not_set_changes_nothing_whatever_its_name(name: str) -> None:
    store = store_with()
    alter(store, "t", (name, DELETE, None))
    alter_broker(store, "1", (name, DELETE, ""))
    alter_broker(store, "", (name, DELETE, ""))
    assert store.serialise() == store_with().serialise()


def test_settings_without_effect_are_kept_and_shown() -> None:
    store = store_with("num.io.threads=16")
    alter(store, "t", ("leader.replication.throttled.replicas", SET, "0:1"))
    alter(store, "t", ("leader.replication.throttled.replicas", APPEND, "1:1"))
    alter_broker(store, "", ("leader.replication.throttled.rate", SET, "1000"))
    again = store_with("num.io.threads=16")
    again.restore(store.serialise())
    shown = entry(again, "t", "leader.replication.throttled.replicas")
    assert (shown.value, shown.source) == ("0:1,1:1", SettingSource.TOPIC)
    by_name = {each.name: each for each in again.describe_broker()}
    pools, rate = by_name["num.io.threads"], by_name["leader.replication.throttled.rate"]
    assert (pools.value, pools.source) == ("16", SettingSource.STATIC_BROKER)
    assert (rate.value, rate.source) == ("1000", SettingSource.DYNAMIC_DEFAULT_BROKER)


@pytest.mark.parametrize("text", ["0", "0:1,*", "a:1", "0:1;1:1", "-1:0"])
def test_throttled_replicas_are_a_star_or_pairs(text: str) -> None:
    with pytest.raises(ConfigError, match="partition:broker"):
        alter(store_with(), "t", ("follower.replication.throttled.replicas", SET, text))


def test_a_key_named_twice_in_one_request_is_refused() -> None:
    with pytest.raises(ConfigRequestError, match="twice"):
        alter(store_with(), "t", ("segment.ms", SET, "6"), ("segment.ms", SET, "7"))


def test_alter_configs_replaces_every_override() -> None:
    store = store_with()
    store.set_topic("t", {"segment.ms": "5", "retention.ms": "6"})
    store.set_topic("t", {"retention.ms": "7"})
    assert store.topic_overrides("t") == {"retention.ms": "7"}


def test_a_null_value_is_not_an_override() -> None:
    with pytest.raises(ConfigRequestError):
        store_with().set_topic("t", {"segment.ms": None})


def test_a_prepared_change_counts_only_when_committed() -> None:
    store = store_with()
    change = store.prepare_topic("t", {"segment.ms": "5"})
    assert store.topic_overrides("t") == {}
    assert '"segment.ms": "5"' in change.serialise()
    store.commit(change)
    assert store.serialise() == change.serialise()
    with pytest.raises(AssertionError):
        store.commit(change)


def test_subscribers_hear_which_topic_changed_or_that_the_broker_did() -> None:
    store, heard = store_with(), []
    store.subscribe(lambda topic: heard.append((topic, store.topic_config("t").segment_ms)))
    store.set_topic("t", {"segment.ms": "5"})
    alter_broker(store, "", ("log.roll.ms", SET, "6"))
    store.remove_topic("t")
    store.remove_topic("t")
    assert heard == [("t", 5), (None, 5), ("t", 6)]
    assert not store.topics_with_overrides()


def test_a_setting_read_at_start_cannot_change_at_run_time() -> None:
    store = store_with()
    with pytest.raises(ConfigRequestError, match="lock everybody out"):
        alter_broker(store, "1", ("listeners", SET, "PLAINTEXT://:1"))
    with pytest.raises(ConfigRequestError, match="read at start"):
        store.prepare_broker("1", {"group.max.size": "3"})
    read_only = {each.name for each in store.describe_broker() if each.read_only}
    assert {"listeners", "node.id"} <= read_only
    assert "log.retention.ms" not in read_only


def test_settings_of_another_broker_are_refused() -> None:
    store = store_with("node.id=4")
    with pytest.raises(ConfigRequestError, match="broker 5 is not here: this is broker 4"):
        alter_broker(store, "5", ("max.connections", SET, "3"))
    with pytest.raises(ConfigRequestError):
        store.describe_broker("5")
    assert store.describe_broker("4") == store.describe_broker()


def test_alter_configs_of_the_broker_replaces_every_override() -> None:
    store = store_with()
    store.commit(store.prepare_broker("1", {"max.connections": "3", "message.max.bytes": "4"}))
    store.commit(store.prepare_broker("1", {"max.connections": "5"}))
    assert store.broker_config.max_connections == 5
    assert store.topic_defaults.max_message_bytes == 1_048_588


def test_every_broker_is_described_by_what_is_set_for_all_alone() -> None:
    store = store_with("log.roll.ms=9")
    assert store.describe_broker("") == []
    alter_broker(store, "", ("log.retention.ms", SET, "1h"))
    (only,) = store.describe_broker("")
    assert (only.name, only.value) == ("log.retention.ms", "3600000")
    assert only.source is SettingSource.DYNAMIC_DEFAULT_BROKER


def test_hours_are_reported_as_hours_and_as_the_milliseconds_they_are() -> None:
    store = store_with("log.retention.hours=2")
    assert entry(store, "t", "retention.ms").value == "7200000"
    by_name = {each.name: each for each in store.describe_broker()}
    assert by_name["log.retention.ms"].value == "7200000"
    assert by_name["log.retention.hours"].value == "2"
    assert by_name["log.retention.hours"].source is SettingSource.STATIC_BROKER
    assert "log.retention.minutes" not in by_name


def test_a_topic_is_described_by_every_key_once() -> None:
    entries = store_with().describe_topic("t")
    names = [each.name for each in entries]
    assert len(names) == len(set(names))
    assert all(each.is_default and each.documentation and not each.read_only for each in entries)
    assert "max.message.time.difference.ms" not in names
    assert "internal.segment.bytes" not in names


def test_only_the_asked_entries_are_described_and_unknown_ones_are_left_out() -> None:
    entries = store_with().describe_topic("t", ["segment.ms", "no.such.key"])
    assert [each.name for each in entries] == ["segment.ms"]
    assert store_with().describe_topic("t", []) == []


def test_what_was_set_survives_a_restart() -> None:
    store = store_with()
    store.set_topic("t", {"retention.ms": "1h", "cleanup.policy": "compact,delete"})
    alter_broker(store, "", ("message.max.bytes", SET, "2MiB"))
    alter_broker(store, "1", ("max.connections", SET, "7"))
    again = store_with()
    again.restore(store.serialise())
    assert again.serialise() == store.serialise()
    assert again.topic_config("t") == store.topic_config("t")
    assert again.describe_topic("t") == store.describe_topic("t")
    assert again.broker_config.max_connections == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 3, "topics": {}, "brokers": {}}',
        '{"version": 1, "topics": {"t": {"no.such": "1"}}, "brokers": {}}',
        '{"version": 1, "topics": {"t": {"segment.ms": "0"}}, "brokers": {}}',
        '{"version": 1, "topics": {"t": ["a"]}, "brokers": {}}',
        '{"version": 1, "topics": {"t": {"segment.ms": 5}}, "brokers": {}}',
        '{"version": 1, "topics": {}}',
        '{"version": %s}' % ("9" * 5000),
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_stored_settings_that_are_damaged_or_newer_are_refused(text: str) -> None:
    store = store_with()
    with pytest.raises(ConfigError):
        store.restore(text)
    assert store.topic_config("t") == TopicConfig()
