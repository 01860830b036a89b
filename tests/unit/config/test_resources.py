"""Settings of groups and of subscriptions: bounds, what is stored, and what coordinators read."""

import json

import pytest

from config.alter import Alteration, Operation
from config.errors import ConfigError, ConfigRequestError
from config.layers import SettingSource
from config.names import broker_name
from config.resources.group import GROUP_KEYS, GroupConfig
from config.resources.kinds import ResourceKind
from config.resources.rules import MOST_NAMES, MOST_SUBSCRIPTIONS
from config.sources import load
from config.store import ConfigStore

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
GROUP, CLIENT_METRICS = ResourceKind.GROUP, ResourceKind.CLIENT_METRICS


def store_with(*flags: str) -> ConfigStore:
    return ConfigStore(load(flags=flags, environment={}).layers)


def put(store: ConfigStore, kind: ResourceKind, name: str, **settings: str) -> None:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    store.commit(store.prepare(kind, name, named))


def test_a_group_has_its_own_setting_else_that_of_the_broker() -> None:
    store = store_with("group.consumer.session.timeout.ms=50000")
    put(store, GROUP, "g", consumer_heartbeat_interval_ms="7000")
    assert store.group_config("g") == GroupConfig(
        consumer_session_timeout_ms=50_000, consumer_heartbeat_interval_ms=7000
    )
    assert store.group_config("g") is store.group_config("g")
    assert store.group_config("other") == GroupConfig(consumer_session_timeout_ms=50_000)
    put(store, GROUP, "g")
    assert store.group_config("g") == store.group_config("other")
    assert list(store.names_with_settings(GROUP)) == []


def test_defaults_of_groups_are_those_of_the_broker() -> None:
    for key in (each for each in GROUP_KEYS if each.on_broker):
        (of_broker,) = broker_name(key.broker_name).keys
        assert (key.default, key.type) == (of_broker.default, of_broker.type)


def test_once_the_bounds_of_the_broker_change_the_nearer_one_counts() -> None:
    store = store_with()
    put(store, GROUP, "g", consumer_session_timeout_ms="60000")
    put(store, GROUP, "h", consumer_heartbeat_interval_ms="6000")
    narrow = store_with(
        "group.consumer.max.session.timeout.ms=50000", "group.consumer.min.heartbeat.interval.ms=7s"
    )
    narrow.restore(store.serialise())
    assert narrow.group_config("g").consumer_session_timeout_ms == 50_000
    assert narrow.group_config("h").consumer_heartbeat_interval_ms == 7000
    (shown,) = narrow.describe(GROUP, "g", [SESSION])
    assert shown.value == "60000"


def test_bounds_that_exclude_one_another_are_refused() -> None:
    with pytest.raises(ConfigError, match="must be greater than or equal") as refusal:
        store_with("group.consumer.max.session.timeout.ms=44999")
    assert refusal.value.key == "group.consumer.max.session.timeout.ms"


def test_a_heartbeat_comes_within_the_session_by_what_would_be_in_force() -> None:
    store = store_with("group.consumer.min.session.timeout.ms=1000")
    with pytest.raises(ConfigError, match=f"^{SESSION} must be greater than {HEARTBEAT}$"):
        store.prepare(GROUP, "g", {SESSION: "5000"})
    put(store, GROUP, "g", consumer_session_timeout_ms="5001")
    with pytest.raises(ConfigError, match="must be greater"):
        store.prepare_alteration(GROUP, "g", [Alteration(HEARTBEAT, Operation.SET, "5001")])


def test_a_flag_of_the_broker_does_not_make_a_groups_setting_read_only() -> None:
    store = store_with("group.consumer.session.timeout.ms=50000", "log.retention.ms=5")
    (of_group,) = store.describe(GROUP, "g", [SESSION])
    (of_topic,) = store.describe(ResourceKind.TOPIC, "t", ["retention.ms"])
    (of_broker,) = store.describe(ResourceKind.BROKER, "1", ["log.retention.ms"])
    assert (of_group.read_only, of_topic.read_only, of_broker.read_only) == (False, False, True)
    assert (of_group.value, of_group.source) == ("50000", SettingSource.STATIC_BROKER)


def test_what_was_stored_comes_back() -> None:
    store = store_with()
    put(store, GROUP, "g", consumer_session_timeout_ms="46s")
    put(store, CLIENT_METRICS, "all", interval_ms="100", metrics=" a, b.c ", match="client_id=a.*")
    again = store_with()
    again.restore(store.serialise())
    assert again.serialise() == store.serialise()
    assert again.group_config("g").consumer_session_timeout_ms == 46_000
    shown = {each.name: each.value for each in again.describe(CLIENT_METRICS, "all")}
    assert shown == {"interval.ms": "100", "metrics": "a,b.c", "match": "client_id=a.*"}


@pytest.mark.parametrize(
    "expression", ["a(", "a{99999999999}", "(" * 4000 + ")" * 4000], ids=["open", "bound", "deep"]
)
def test_what_is_no_expression_matches_no_client(expression: str) -> None:
    with pytest.raises(ConfigError, match="Illegal client matching pattern"):
        put(store_with(), CLIENT_METRICS, "all", match=f"client_id={expression}")


def test_a_release_before_reads_what_has_nothing_of_groups() -> None:
    store = store_with()
    put(store, GROUP, "g", consumer_session_timeout_ms="46s")
    assert json.loads(store.serialise())["version"] == 2
    put(store, GROUP, "g")
    text = json.loads(store.serialise())
    assert (text["version"], sorted(text)) == (1, ["brokers", "checksum", "topics", "version"])


def test_a_change_of_a_group_is_no_matter_of_topics() -> None:
    store = store_with()
    heard: list[str | None] = []
    store.subscribe(heard.append)
    topics = store.topic_defaults
    put(store, GROUP, "g", consumer_session_timeout_ms="46s")
    assert heard == []
    assert store.topic_defaults is topics


@pytest.mark.parametrize(
    ("kind", "most", "name", "values"),
    [
        (GROUP, MOST_NAMES, SESSION, ("46000", "47000")),
        (CLIENT_METRICS, MOST_SUBSCRIPTIONS, "interval.ms", ("100", "101")),
    ],
)
def test_there_is_a_limit_to_names_with_settings(
    kind: ResourceKind, most: int, name: str, values: tuple[str, str]
) -> None:
    store = store_with()
    for number in range(most):
        store.commit(store.prepare(kind, str(number), {name: values[0]}))
    store.commit(store.prepare(kind, "0", {name: values[1]}))
    with pytest.raises(ConfigRequestError, match="have settings"):
        store.prepare(kind, "more", {name: values[0]})
    store.commit(store.prepare(kind, "0", {}))
    store.commit(store.prepare(kind, "more", {name: values[0]}))
    with pytest.raises(ConfigRequestError, match="longer than"):
        store.prepare(GROUP, "x" * 4097, {SESSION: "45000"})


@pytest.mark.parametrize(("name", "value"), [("metrics", "m" * 16_385), ("match", "m" * 16_385)])
def test_lists_of_a_subscription_have_a_limit(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match="16385 characters"):
        store_with().prepare(CLIENT_METRICS, "s", {name: value})
