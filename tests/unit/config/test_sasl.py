"""Settings of SASL: which listeners have it, by which mechanisms, and what is refused."""

import pytest

from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore

BOTH = "SCRAM-SHA-256", "SCRAM-SHA-512"
MAP = "listener.security.protocol.map=A:SASL_PLAINTEXT,B:SASL_PLAINTEXT,C:PLAINTEXT"


def store(*flags: str) -> ConfigStore:
    return ConfigStore(load(flags=flags, environment={}).layers)


def names(*flags: str) -> list[str]:
    return [each.name for each in store(*flags).broker_config.sasl_listeners]


def test_listeners_have_sasl_by_their_protocol() -> None:
    assert names() == []
    assert names("listeners=SASL_PLAINTEXT://:1,PLAINTEXT://:2") == ["SASL_PLAINTEXT"]
    assert names("listeners=A://:1,C://:2,B://:3", MAP) == ["A", "B"]


def test_a_listener_may_have_mechanisms_of_its_own() -> None:
    own = "listener.name.a.sasl.enabled.mechanisms=SCRAM-SHA-512"
    config = store("listeners=A://:1,B://:2", MAP, own).broker_config
    assert config.mechanisms_of("A") == ("SCRAM-SHA-512",)
    assert config.mechanisms_of("B") == BOTH


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["sasl.enabled.mechanisms=GSSAPI"], "GSSAPI .* is not served: use SCRAM"),
        (["sasl.enabled.mechanisms=SCRAM-SHA-1"], "SCRAM-SHA-1 is not one of"),
        (["sasl.enabled.mechanisms="], "at least one mechanism"),
        (["sasl.jaas.config=x"], "no class is loaded by its name"),
        (["sasl.kerberos.service.name=x"], "in no other way"),
        (["listener.name.a.plain.sasl.jaas.config=x"], "in no other way"),
        (["listener.name.c.sasl.enabled.mechanisms=PLAIN"], "C has no SASL"),
        (["listener.name.d.sasl.enabled.mechanisms=PLAIN"], "listeners has no D"),
        (["sasl.enabled.mechanisms=PLAIN"], "PLAIN shows passwords.* to the network of A"),
        (["listener.name.b.sasl.enabled.mechanisms=PLAIN"], "to the network of B"),
    ],
)
def test_what_is_refused(flags: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        store("listeners=A://:1,B://:2,C://:3", MAP, *flags)


@pytest.mark.parametrize(
    "flags",
    [
        ["listeners=A://127.0.0.1:1,C://:2"],
        ["listeners=A://[::1]:1"],
        ["listeners=A://localhost:1"],
        ["listeners=A://:1", "horolog.sasl.plaintext.allowed=true"],
    ],
)
def test_passwords_may_be_shown_to_this_machine_or_where_that_is_said(flags: list[str]) -> None:
    assert store(MAP, "sasl.enabled.mechanisms=PLAIN", *flags).broker_config.sasl_listeners
