"""Rules of the tier between keys: at the start, of topics, and when the broker's change."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from config.alter import Alteration, Operation
from config.errors import ConfigError
from config.layers import SettingSource
from config.sources import load
from config.store import ConfigStore

TIER = ("remote.log.storage.system.enable=true", "horolog.tier.url=s3://logs/a")
ALLOWED = "horolog.tier.compacted=true"
TIERED = {"remote.storage.enable": "true"}


def store_with(*flags: str) -> ConfigStore:
    """As a file would set them."""
    layers = load(flags=flags, environment={}).layers
    return ConfigStore([replace(each, pinned=False) for each in layers])


def why_not(store: ConfigStore, topic: str, settings: Mapping[str, str | None]) -> ConfigError:
    with pytest.raises(ConfigError) as refused:
        store.set_topic(topic, settings)
    return refused.value


def step(store: ConfigStore, topic: str, **changes: str | None) -> None:
    """`a_b="1"` sets `a.b`, None takes it back."""
    alterations = [
        Alteration(name.replace("_", "."), Operation.SET, value)
        if value is not None
        else Alteration(name.replace("_", "."), Operation.DELETE)
        for name, value in changes.items()
    ]
    store.commit(store.prepare_topic_alteration(topic, alterations))


def test_a_tier_without_a_place_does_not_start() -> None:
    with pytest.raises(ConfigError, match=r"needs horolog\.tier\.url") as refused:
        store_with("remote.log.storage.system.enable=true")
    assert refused.value.key == "remote.log.storage.system.enable"
    assert "--set" in str(refused.value), "the place where it was written"


def test_a_place_without_the_tier_is_not_used() -> None:
    assert not store_with(
        "horolog.tier.url=s3://logs"
    ).broker_config.remote_log_storage_system_enable


def test_local_defaults_above_the_total_ones_do_not_start_with_a_tier() -> None:
    limits = ("log.retention.ms=10", "log.local.retention.ms=11")
    store_with(*limits)
    with pytest.raises(ConfigError, match=r"must not be more than log\.retention\.ms") as refused:
        store_with(*TIER, *limits)
    assert refused.value.key == "log.local.retention.ms"


def test_a_compacted_topic_has_no_tier() -> None:
    both = {**TIERED, "cleanup.policy": "compact"}
    assert why_not(store_with(*TIER), "t", both).key == "cleanup.policy"


def test_a_compacted_topic_has_a_tier_where_the_broker_allows_it() -> None:
    store = store_with(*TIER, ALLOWED)
    store.set_topic("t", {**TIERED, "cleanup.policy": "compact,delete"})
    refused = why_not(
        store, "t", {**TIERED, "cleanup.policy": "compact", "remote.log.copy.disable": "true"}
    )
    assert refused.key == "remote.log.copy.disable"
    assert "what compaction rewrites has to be copied again" in str(refused)


def test_a_broker_that_does_not_allow_it_does_not_start_on_a_compacted_topic_with_a_tier() -> None:
    before = store_with(*TIER, ALLOWED)
    before.set_topic("t", {**TIERED, "cleanup.policy": "compact"})
    after = store_with(*TIER)
    after.restore(before.serialise())
    with pytest.raises(ConfigError, match="topic t has both") as refused:
        after.check_stored_topics()
    assert refused.value.key == "horolog.tier.compacted"
    again = store_with(*TIER, ALLOWED)
    again.restore(before.serialise())
    again.check_stored_topics()


def test_a_tier_ends_only_with_its_data() -> None:
    store = store_with(*TIER)
    store.set_topic("t", TIERED)
    assert why_not(store, "t", {}).key == "remote.storage.enable"
    with pytest.raises(ConfigError, match="without deleting remote data"):
        step(store, "t", remote_storage_enable=None)
    step(store, "t", remote_storage_enable="false", remote_log_delete_on_disable="true")
    assert not store.topic_config("t").remote_storage_enable
    store.set_topic("t", {})


def test_a_deleted_topic_leaves_no_tier_to_its_successor() -> None:
    store = store_with(*TIER)
    store.set_topic("t", TIERED)
    store.check_new_topic("t", {})
    store.remove_topic("t")
    assert store.topic_overrides("t") == {}
    store.set_topic("t", {})


def test_a_total_limit_of_the_broker_below_a_topics_local_one_is_taken_as_in_kafka() -> None:
    store = store_with(*TIER)
    store.set_topic("t", {**TIERED, "local.retention.ms": "1000"})
    store.commit(store.prepare_broker("1", {"log.retention.ms": "999"}))
    config = store.topic_config("t")
    assert (config.local_retention_ms, config.retention_ms) == (1000, 999)
    assert why_not(store, "t", {**TIERED, "local.retention.ms": "1000"}).key == "local.retention.ms"


def test_a_limit_of_the_broker_holds_for_topics_that_say_nothing() -> None:
    store = store_with(*TIER, "log.local.retention.ms=5m")
    store.set_topic("t", TIERED)
    assert store.topic_config("t").local_retention_ms == 300_000
    step(store, "t", local_retention_ms="-2")
    assert store.topic_config("t").local_retention_ms == -2


def test_a_broker_without_the_tier_does_not_start_on_topics_that_have_one() -> None:
    before = store_with(*TIER)
    before.set_topic("t", TIERED)
    after = store_with()
    after.restore(before.serialise())
    with pytest.raises(ConfigError, match=r"delete all topics .*topic t has it") as refused:
        after.check_stored_topics()
    assert refused.value.key == "remote.log.storage.system.enable"
    again = store_with(*TIER)
    again.restore(before.serialise())
    again.check_stored_topics()


def test_a_key_of_topics_alone_has_no_synonym_on_the_broker() -> None:
    store = store_with(*TIER)
    (entry,) = store.describe_topic("t", ["remote.storage.enable"])
    assert (entry.value, entry.source, entry.synonyms) == ("false", SettingSource.DEFAULT, ())
    store.set_topic("t", TIERED)
    (entry,) = store.describe_topic("t", ["remote.storage.enable"])
    assert [(each.name, each.value) for each in entry.synonyms] == [
        ("remote.storage.enable", "true")
    ]
