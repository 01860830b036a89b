"""Listeners with TLS: their protocols, and which of the settings count for which of them."""

import pytest

from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore

INLINE = {"ssl.keystore.key": "KEY-CANARY", "ssl.keystore.certificate.chain": "CHAIN"}


def store(**settings: str) -> ConfigStore:
    flags = [f"{name}={value}" for name, value in settings.items()]
    return ConfigStore(load(flags=flags, environment={}).layers)


def refusal(**settings: str) -> str:
    with pytest.raises(ConfigError) as caught:
        store(**settings)
    return str(caught.value)


def test_a_listeners_own_settings_win_over_those_of_all_in_whatever_layer() -> None:
    file = "listener.name.in.ssl.keystore.location"
    of_file = load(flags=[f"{file}=/own", "listener.name.in.ssl.client.auth=none"], environment={})
    settings = {
        "listeners": "IN://:1,OUT://:2,PLAIN://:3",
        "listener.security.protocol.map": "in:SSL,Out:ssl,PLAIN:PLAINTEXT",
        "ssl.keystore.location": "/all",
        "ssl.truststore.location": "/trust",
        "ssl.client.auth": "required",
    }
    flags = [f"{name}={value}" for name, value in settings.items()]
    config = ConfigStore([load(flags=flags, environment={}).layers[0], of_file.layers[0]])
    tls = config.broker_config.listener_tls
    assert {name: each.keystore_location for name, each in tls.items()} == {
        "IN": "/own",
        "OUT": "/all",
    }
    assert {name: each.client_auth for name, each in tls.items()} == {
        "IN": "none",
        "OUT": "required",
    }


def test_names_without_protocol_are_plaintext_only_where_nothing_is_secured() -> None:
    config = store(listeners="A://:1,B://:2").broker_config
    assert config.listener_tls == {}
    secured = {"listeners": "A://:1,SSL://:2", "ssl.keystore.location": "/x"}
    assert "no protocol for A" in refusal(**secured)
    mapped = {"listeners": "A://:1", "listener.security.protocol.map": "B:SSL"}
    assert "no protocol for A" in refusal(**mapped)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "name a PEM file"),
        ({"ssl.keystore.location": "/x", **INLINE}, "leave one"),
        ({"ssl.keystore.key": "KEY-CANARY"}, "go together"),
        ({**INLINE, "ssl.client.auth": "required"}, "set ssl.truststore.location"),
        ({**INLINE, "listener.name.out.ssl.key.password": "KEY-CANARY"}, "listeners has no OUT"),
        ({**INLINE, "ssl.protocol": "TLSv1.1"}, "ssl.protocol"),
    ],
)
def test_what_is_missing_or_in_vain_is_refused_without_secrets(settings, reason: str) -> None:
    text = refusal(listeners="SSL://:1", **settings)
    assert reason in text
    assert "CANARY" not in text


def test_secrets_are_described_without_their_value() -> None:
    own = {"listener.name.ssl.ssl.key.password": "PASSWORD-CANARY"}
    config = store(listeners="SSL://:1", **INLINE, **own)
    described = {each.name: each for each in config.describe_broker()}
    for name in ("ssl.keystore.key", *own):
        assert described[name].sensitive
        assert described[name].value is None
        assert all(each.value is None for each in described[name].synonyms)
    assert "CANARY" not in repr(config.broker_config)
    assert "CANARY" not in repr(list(described.values()))


def test_clients_with_sasl_are_asked_for_a_certificate_where_their_listener_says_so() -> None:
    of_all = {
        "listeners": "SASL_SSL://:1",
        "ssl.keystore.location": "/x",
        "ssl.truststore.location": "/trust",
        "ssl.client.auth": "required",
    }
    config = store(**of_all).broker_config
    assert config.listener_tls["SASL_SSL"].client_auth == "none"
    own = {"listener.name.sasl_ssl.ssl.client.auth": "required"}
    assert store(**of_all, **own).broker_config.listener_tls["SASL_SSL"].client_auth == "required"


def test_passwords_may_be_spoken_where_tls_hides_them() -> None:
    settings = {"sasl.enabled.mechanisms": "PLAIN", "ssl.keystore.location": "/x"}
    assert store(listeners="SASL_SSL://:1", **settings).broker_config.sasl_listeners
    assert "shows passwords" in refusal(listeners="SASL_PLAINTEXT://:1", **settings)
