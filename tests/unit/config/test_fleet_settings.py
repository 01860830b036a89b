"""Settings of a broker that is one of a fleet: what it needs, what it may not have."""

from collections.abc import Mapping

import pytest

from config.alter import read_setting
from config.errors import ConfigError
from config.fleet.url import OptionalCatalogUrl
from config.layers import Layer, SettingSource
from config.names import broker_name
from config.store import ConfigStore

URL = "postgresql://horolog@127.0.0.1:5432/fleet"
FLEET = {"horolog.fleet.url": URL, "horolog.tier.url": "s3://bucket/fleet"}


def store(given: Mapping[str, str]) -> ConfigStore:
    settings = {key: read_setting(key, text, broker_name) for key, text in given.items()}
    return ConfigStore([Layer(SettingSource.STATIC_BROKER, settings, pinned=True)])


def test_records_of_a_fleet_are_answered_when_they_are_committed() -> None:
    config = store(FLEET)
    assert config.topic_config("t").horolog_durability == "fsync"
    [shown] = [
        each for each in config.describe_topic("t") if each.name == "horolog.durability"
    ]  # fmt: skip
    assert (shown.value, shown.source) == ("fsync", SettingSource.STATIC_BROKER)
    assert store({}).topic_config("t").horolog_durability == "by-acks"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("horolog.durability", "by-acks"),
        ("horolog.timestamp.policy", "quarantine"),
    ],
)
def test_a_topic_of_a_fleet_cannot_have_what_needs_one_disk(key: str, text: str) -> None:
    config = store(FLEET)
    with pytest.raises(ConfigError, match=key):
        config.check_new_topic("t", {key: text})
    with pytest.raises(ConfigError, match=key):
        store({**FLEET, key: text})
    store({}).check_new_topic("t", {key: text})


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("remote.log.storage.system.enable", "false"),
        ("horolog.audit.topic", "audit"),
        ("horolog.security.audit.topic", "audit"),
    ],
)
def test_a_broker_of_a_fleet_cannot_have_what_needs_all_partitions_here(
    key: str, text: str
) -> None:
    with pytest.raises(ConfigError, match=key):
        store({**FLEET, key: text})


def test_a_fleet_needs_a_store() -> None:
    with pytest.raises(ConfigError, match=r"horolog\.tier\.url"):
        store({"horolog.fleet.url": URL})


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://horolog@db.example.com/fleet",
        "postgresql://horolog@127.0.0.1,db.example.com:5432/fleet",
        "postgresql://horolog@db.example.com/fleet?sslmode=prefer",
        "postgresql:///fleet?host=db.example.com",
    ],
)
def test_a_database_elsewhere_is_reached_with_tls_unless_that_is_waived(url: str) -> None:
    with pytest.raises(ConfigError, match="sslmode=verify-full"):
        store({**FLEET, "horolog.fleet.url": url})
    store({**FLEET, "horolog.fleet.url": url, "horolog.fleet.allow.plaintext": "true"})


@pytest.mark.parametrize(
    "url",
    [
        URL,
        "postgres://localhost/fleet",
        "postgresql://[::1]:5432/fleet",
        "postgresql:///fleet?host=/var/run/postgresql",
        "postgresql://horolog@db1,db2:5433/fleet?sslmode=verify-full",
        "postgresql://db.example.com/fleet?sslmode=require",
    ],
)
def test_a_database_that_nobody_can_overhear_is_taken(url: str) -> None:
    assert str(store({**FLEET, "horolog.fleet.url": url}).broker_config.horolog_fleet_url) == url


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("mysql://host/fleet", "postgresql://"),
        ("postgresql://horolog:secret@host/fleet", "PGPASSFILE"),
        ("postgresql://host/fleet?password=secret", "PGPASSFILE"),
        ("postgresql://host", "must name a database"),
        ("postgresql://host/", "must name a database"),
        ("postgresql://host/fleet#secret", "must name a database"),
    ],
)
def test_another_url_is_refused_and_not_repeated(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        OptionalCatalogUrl().parse(text)
    assert "secret" not in str(refused.value)
    assert OptionalCatalogUrl().parse(" ") is None
