"""Settings of OAUTHBEARER and of sessions: what a listener has of them, and what is refused."""

import pytest

from config.alter import Alteration, Operation
from config.errors import ConfigError
from config.security.oauth import OauthConfig
from config.sources import load
from config.store import ConfigStore

MAP = "listener.security.protocol.map=A:SASL_PLAINTEXT,B:SASL_PLAINTEXT,C:PLAINTEXT"
LISTENERS = "listeners=A://127.0.0.1:1,B://127.0.0.1:2,C://127.0.0.1:3"
OAUTH = (
    "sasl.enabled.mechanisms=OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url=https://issuer/keys",
    "sasl.oauthbearer.expected.issuer=https://issuer",
    "sasl.oauthbearer.expected.audience=horolog, other",
)


def store(*flags: str) -> ConfigStore:
    return ConfigStore(load(flags=[MAP, LISTENERS, *flags], environment={}).layers)


def oauth(*flags: str) -> dict[str, OauthConfig]:
    return dict(store(*flags).broker_config.listener_oauth)


def test_listeners_share_the_settings_and_may_have_their_own() -> None:
    found = oauth(
        *OAUTH,
        "listener.name.a.sasl.oauthbearer.expected.issuer=https://a",
        "listener.name.a.oauthbearer.sasl.oauthbearer.expected.issuer=https://nearer",
        "listener.name.b.sasl.oauthbearer.clock.skew.seconds=5",
        "listener.name.b.oauthbearer.horolog.sasl.oauthbearer.truststore.location=/x.pem",
    )
    assert set(found) == {"A", "B"}
    assert found["A"].expected_issuer == "https://nearer"
    assert found["A"].expected_audience == ("horolog", "other")
    assert (found["A"].clock_skew_seconds, found["B"].clock_skew_seconds) == (30, 5)
    assert found["B"].truststore_location == "/x.pem"


def test_only_listeners_with_the_mechanism_have_it() -> None:
    own = "listener.name.a.sasl.enabled.mechanisms=SCRAM-SHA-256"
    assert set(oauth(*OAUTH, own)) == {"B"}
    assert oauth() == {}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (OAUTH[:1], r"jwks\.endpoint\.url of listener A: OAUTHBEARER needs the keys"),
        (OAUTH[:2], r"expected\.issuer of listener A: OAUTHBEARER needs the issuer"),
        (OAUTH[:3], r"expected\.audience of listener A: OAUTHBEARER needs an audience"),
        ([*OAUTH[:3], "sasl.oauthbearer.expected.audience= , "], "needs an audience"),
        (["sasl.oauthbearer.jwks.endpoint.url=http://issuer/keys"], "use https"),
        (["sasl.oauthbearer.jwks.endpoint.url=ftp://issuer/keys"], "is not https://"),
        (["sasl.oauthbearer.jwks.endpoint.url=file://host/keys"], "is not https://"),
        (["sasl.oauthbearer.jwks.endpoint.url=keys.json"], "is not https://"),
        (["sasl.oauthbearer.jwks.endpoint.url=https://me:secret@issuer/"], "URL with a password"),
        (["sasl.oauthbearer.sub.claim.name= "], "is not the name of a claim"),
        (["listener.name.c.oauthbearer.sasl.oauthbearer.sub.claim.name=x"], "C has no SASL"),
        (["listener.name.c.connections.max.reauth.ms=5"], "C has no SASL"),
        (["listener.name.a.plain.sasl.oauthbearer.sub.claim.name=x"], "in no other way"),
        (["sasl.oauthbearer.token.endpoint.url=https://x"], "in no other way"),
        (["sasl.server.callback.handler.class=com.example.Mine"], "no class is loaded"),
        (["sasl.oauthbearer.jwt.validator.class=com.example.Mine"], "no class is loaded"),
        ([*OAUTH, "horolog.sasl.oauthbearer.unsecured=true"], "is set too: leave one"),
        (
            ["listeners=A://127.0.0.1:1,C://:3", "horolog.sasl.oauthbearer.unsecured=true"],
            "which is not loopback",
        ),
        ([*OAUTH, "listeners=A://:1"], "OAUTHBEARER tokens, to the network of A"),
    ],
)
def test_what_is_refused(flags: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        store(*flags)
    assert "secret" not in str(refused.value)


HTTP = (
    "listener.name.http.sasl.enabled.mechanisms=OAUTHBEARER",
    "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
OPEN = "listeners=C://127.0.0.1:3"


def test_the_http_port_takes_tokens_when_it_is_told_to() -> None:
    assert "HTTP" not in oauth(*OAUTH)
    found = oauth(*OAUTH, *HTTP, "listener.name.http.sasl.oauthbearer.expected.audience=admins")
    assert set(found) == {"A", "B", "HTTP"}
    assert found["HTTP"].expected_audience == ("admins",)
    assert found["HTTP"].expected_issuer == "https://issuer"
    assert set(oauth(OPEN, *OAUTH[1:], *HTTP)) == {"HTTP"}


def test_a_listener_of_clients_that_is_called_http_has_its_own_rules() -> None:
    flags = [
        "listener.security.protocol.map=HTTP:SASL_PLAINTEXT", "listeners=HTTP://127.0.0.1:1",
        *OAUTH[1:], HTTP[0],
    ]  # fmt: skip
    config = ConfigStore(load(flags=flags, environment={}).layers).broker_config
    assert config.mechanisms_of("HTTP") == ("OAUTHBEARER",)
    assert set(config.listener_oauth) == {"HTTP"}


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (HTTP, r"jwks\.endpoint\.url of listener HTTP: OAUTHBEARER needs the keys"),
        ([*OAUTH[1:], HTTP[0]], r"set authorizer\.class\.name"),
        ([*OAUTH[1:], *HTTP, "horolog.http.listener="], "there is no HTTP port"),
        ([f"{HTTP[0]},PLAIN", *OAUTH[1:], HTTP[1]], "has OAUTHBEARER alone"),
        (["listener.name.http.sasl.enabled.mechanisms=PLAIN"], "has OAUTHBEARER alone"),
        (["listener.name.http.sasl.oauthbearer.expected.issuer=x"], "has OAUTHBEARER alone"),
        (["listener.name.http.connections.max.reauth.ms=5"], "has no sessions"),
        (
            [*HTTP, "horolog.sasl.oauthbearer.unsecured=true", "horolog.http.listener=0.0.0.0:1"],
            "which is not loopback",
        ),
    ],
)
def test_what_is_refused_of_the_http_port(flags: list[str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        store(OPEN, *flags)


@pytest.mark.parametrize(
    "url",
    [
        "https://issuer/keys", "file:///etc/keys.json", "http://127.0.0.1:8/k",
        "http://localhost/k", "http://[::1]:8/k",
    ],
)  # fmt: skip
def test_places_of_keys(url: str) -> None:
    found = oauth(OAUTH[0], f"sasl.oauthbearer.jwks.endpoint.url={url}", *OAUTH[2:])
    assert found["A"].jwks_endpoint_url == url


def test_unsecured_tokens_need_nothing_on_loopback() -> None:
    assert set(oauth(OAUTH[0], "horolog.sasl.oauthbearer.unsecured=true")) == {"A", "B"}


@pytest.mark.parametrize("name", [each.partition("=")[0] for each in OAUTH])
def test_no_client_may_change_whom_the_broker_believes(name: str) -> None:
    """CVE-2025-27817 and its like: by a client's request the broker would fetch any address."""
    for key in (name, f"listener.name.a.{name}", f"listener.name.a.oauthbearer.{name}"):
        change = Alteration(key, Operation.SET, "https://evil/keys")
        with pytest.raises(ConfigError, match="cannot change at run time"):
            store(*OAUTH).prepare_broker_alteration("1", [change])
        with pytest.raises(ConfigError, match="cannot change at run time"):
            store(*OAUTH).prepare_broker("1", {key: "https://evil/keys"})


def test_classes_that_a_file_for_kafka_names_are_ignored_with_a_reason() -> None:
    package = "org.apache.kafka.common.security.oauthbearer"
    prefix = "listener.name.a.oauthbearer.sasl"
    loaded = load(
        flags=[
            f"{prefix}.jaas.config={package}.OAuthBearerLoginModule required ;",
            f"{prefix}.server.callback.handler.class={package}.OAuthBearerValidatorCallbackHandler",
            f"sasl.oauthbearer.jwt.validator.class={package}.DefaultJwtValidator",
        ],
        environment={},
    )
    assert len(loaded.ignored) == 3


def test_sessions_end_by_listener_and_mechanism() -> None:
    both = "sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN"
    assert store(both).broker_config.longest_sessions_ms("A") == {"SCRAM-SHA-256": 0, "PLAIN": 0}
    config = store(
        both,
        "connections.max.reauth.ms=1h",
        "listener.name.a.connections.max.reauth.ms=5000",
        "listener.name.a.plain.connections.max.reauth.ms=7000",
        "listener.name.b.scram-sha-256.connections.max.reauth.ms=0",
    ).broker_config
    assert config.longest_sessions_ms("A") == {"SCRAM-SHA-256": 5000, "PLAIN": 7000}
    assert config.longest_sessions_ms("B") == {"SCRAM-SHA-256": 0, "PLAIN": 3_600_000}
