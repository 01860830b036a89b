"""The settings of OAUTHBEARER (`sasl.oauthbearer.*`), and the snapshot that a listener has of them.

`listener.name.NAME.sasl.oauthbearer.KEY`, or `listener.name.NAME.oauthbearer.sasl.oauthbearer.KEY`,
wins over the plain key. Names and defaults are Kafka's. Whoever sets them decides whom the broker
believes and where it connects to, so they come from file, environment and flags alone: no client
may change them (CVE-2025-27817 is what became of the other way).
"""

from dataclasses import dataclass
from urllib.parse import urlsplit

from config.declare import broker_key
from config.values import INT_MAX, KafkaType, Text, count, millis

MECHANISM = "OAUTHBEARER"
ENDPOINT = "sasl.oauthbearer.jwks.endpoint.url"
ISSUER = "sasl.oauthbearer.expected.issuer"
AUDIENCE = "sasl.oauthbearer.expected.audience"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_CLAIM = Text(r"\S+", "the name of a claim")


@dataclass(frozen=True, slots=True)
class KeysUrl:
    """The place of a set of keys: https://, file://, or http:// on this machine; or empty."""

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> str:
        """ValueError for anything else."""
        url = text.strip()
        if not url:
            return ""
        found = urlsplit(url)
        if found.username or found.password:
            raise ValueError("a URL with a password is kept in clear: leave that out")
        if found.scheme == "file" and found.path.startswith("/") and not found.netloc:
            return url
        if found.scheme == "https" and found.hostname:
            return url
        if found.scheme == "http" and found.hostname in LOOPBACK:
            return url
        if found.scheme == "http":
            raise ValueError(
                f"{url}: who can change an answer on the way decides who may log in: use https"
            )
        raise ValueError(f"{url!r} is not https://HOST/PATH or file:///PATH")

    def canonical(self, text: str) -> str:
        """Without blanks."""
        return self.parse(text)

    def bounds(self) -> str:
        """For the documentation."""
        return "https://, file:///, http:// on loopback, or empty"


@dataclass(frozen=True, slots=True)
class Names:
    """A list of any words; empty is allowed."""

    @property
    def kafka_type(self) -> KafkaType:
        """LIST."""
        return KafkaType.LIST

    def parse(self, text: str) -> tuple[str, ...]:
        """Without blanks and repetitions."""
        return tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))

    def canonical(self, text: str) -> str:
        """Likewise."""
        return ",".join(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        return "a list, or empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class OauthConfig:
    """The OAUTHBEARER settings of one listener."""

    jwks_endpoint_url: str = broker_key(
        ENDPOINT,
        KeysUrl(),
        "",
        doc="Where the provider publishes the keys that its tokens are signed with (JWKS): an "
        "https:// address, or a file:///PATH. Needed for OAUTHBEARER.",
    )
    jwks_endpoint_refresh_ms: int = broker_key(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        millis(1000),
        3_600_000,
        importance="low",
        doc="The keys are read again so often; a key that is not known asks once a minute.",
    )
    jwks_endpoint_retry_backoff_ms: int = broker_key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        millis(1),
        100,
        importance="low",
        doc="The wait after keys could not be read, twice as long each time.",
    )
    jwks_endpoint_retry_backoff_max_ms: int = broker_key(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        millis(1),
        10_000,
        importance="low",
        doc="The longest of these waits.",
    )
    expected_issuer: str = broker_key(
        ISSUER,
        Text(),
        "",
        doc="The provider as its tokens name it (claim iss). Needed for OAUTHBEARER (Kafka takes "
        "tokens of any issuer without it).",
    )
    expected_audience: tuple[str, ...] = broker_key(
        AUDIENCE,
        Names(),
        (),
        doc="Names of this broker in tokens (claim aud), one of which a token must have. Needed "
        "for OAUTHBEARER (Kafka takes tokens for anybody without it).",
    )
    clock_skew_seconds: int = broker_key(
        "sasl.oauthbearer.clock.skew.seconds",
        count(0, INT_MAX),
        30,
        importance="low",
        doc="Difference of the provider's clock and ours that times in tokens may show.",
    )
    sub_claim_name: str = broker_key(
        "sasl.oauthbearer.sub.claim.name",
        _CLAIM,
        "sub",
        importance="low",
        doc="The claim with the name of the user.",
    )
    scope_claim_name: str = broker_key(
        "sasl.oauthbearer.scope.claim.name",
        _CLAIM,
        "scope",
        importance="low",
        doc="The claim with the scopes, which must be well-formed; they give no rights.",
    )
    truststore_location: str = broker_key(
        "horolog.sasl.oauthbearer.truststore.location",
        Text(),
        "",
        doc="PEM file with the authorities that the certificate of the provider's https:// address "
        "may come from; empty: those of the system.",
    )


def what_is_missing(config: OauthConfig) -> tuple[str, str] | None:
    """The key and the reason, without which tokens cannot be checked."""
    if not config.jwks_endpoint_url:
        return ENDPOINT, "OAUTHBEARER needs the keys that tokens are signed with: name their place"
    if not config.expected_issuer:
        return ISSUER, "OAUTHBEARER needs the issuer: without it, tokens of anybody would do"
    if not config.expected_audience:
        return AUDIENCE, "OAUTHBEARER needs an audience: without it, tokens for others would do"
    return None
