"""Settings of a client that reaches a broker by TLS and SASL, by the names of Kafka's clients.

Of `security.*`, `sasl.*` and `ssl.*` whatever is not taken is refused by its name: passed over, it
would leave a connection less safe than its user believes. Stores are PEM (our default) or PKCS12.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from broker.access.errors import BadSetting
from config.security.protocols import PLAINTEXT, PROTOCOLS, SASL
from config.security.sasl import MECHANISMS
from config.security.tls import PEM, StoreType

PROTOCOL, MECHANISM, JAAS = "security.protocol", "sasl.mechanism", "sasl.jaas.config"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105 - the name of a setting
HOSTS = "ssl.endpoint.identification.algorithm"
CALLBACK = "sasl.login.callback.handler.class"
BEARER = "OAUTHBEARER"
SECRETS = frozenset((
    JAAS, "ssl.key.password", "ssl.keystore.key", "ssl.keystore.password",
    "ssl.truststore.password", "sasl.oauthbearer.client.credentials.client.secret",
))  # fmt: skip
TAKEN = (
    PROTOCOL, MECHANISM, JAAS, HOSTS, CALLBACK, TOKEN_URL, "sasl.oauthbearer.scope",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    *(f"ssl.truststore.{name}" for name in ("type", "location", "certificates", "password")),
    *(f"ssl.keystore.{name}" for name in (
        "type", "location", "password", "key", "certificate.chain",
    )),
    "ssl.key.password",
)  # fmt: skip
_FAMILIES = ("security.", "sasl.", "ssl.")
_CALLBACKS = re.compile(r"org\.apache\.kafka\.[a-z.]+\.OAuthBearerLoginCallbackHandler")
_OPTION = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """The way to reach a broker, and the user; without settings in the clear, as nobody.

    Plain values, which may be sent to other processes; printed, none is shown.
    """

    settings: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @property
    def protocol(self) -> str:
        """One of `PROTOCOLS`."""
        return self.settings.get(PROTOCOL, PLAINTEXT).strip().upper()

    @property
    def mechanism(self) -> str:
        """One of `MECHANISMS`; empty without SASL."""
        return self.settings.get(MECHANISM, "") if self.protocol in SASL else ""

    @property
    def jaas(self) -> Mapping[str, str]:
        """The options of `sasl.jaas.config`, of whatever login module."""
        found = _OPTION.findall(self.settings.get(JAAS, ""))
        return {name: _plain(quoted) or bare for name, quoted, bare in found}

    @property
    def login(self) -> tuple[str, str] | None:
        """User and password of `sasl.jaas.config`."""
        options = self.jaas
        if not {"username", "password"} <= options.keys():
            return None
        return options["username"], options["password"]

    @property
    def user(self) -> str:
        """As errors name whoever was refused."""
        if self.mechanism and self.mechanism != BEARER and self.login:
            return f"User:{self.login[0]}"
        return {"": "the user of this connection", BEARER: "the user of the token"}.get(
            self.mechanism, "the user"
        )


IN_THE_CLEAR = ClientSecurity()


def client_security(
    settings: Mapping[str, str], name: Callable[[str], str] = str
) -> ClientSecurity:
    """The settings, checked, without opening a file. Others than of security are left out.

    BadSetting; `name` says how the user wrote a key.
    """
    own = {key: value for key, value in settings.items() if key.startswith(_FAMILIES)}
    for key in own:
        if key not in TAKEN:
            raise BadSetting(f"{name(key)} is not taken here; of security are {', '.join(TAKEN)}")
    made = ClientSecurity(own)
    for key, reason in _wrong(made):
        raise BadSetting(f"{name(key)}: {reason}")
    return made


def _wrong(made: ClientSecurity) -> list[tuple[str, str]]:
    """The keys that are wrong, and why."""
    own = made.settings
    found = []
    if made.protocol not in PROTOCOLS:
        found.append((PROTOCOL, f"{made.protocol!r} is not one of {', '.join(PROTOCOLS)}"))
    for key in ("ssl.truststore.type", "ssl.keystore.type"):
        try:
            StoreType().parse(own.get(key, PEM))
        except ValueError as error:
            found.append((key, str(error)))
    if own.get(HOSTS, "https").lower() not in {"https", ""}:
        found.append((HOSTS, "https, or nothing: the broker's name is not checked"))
    if not _CALLBACKS.fullmatch(own.get(CALLBACK, _KAFKAS)):
        found.append((CALLBACK, f"no class is loaded by its name; {_KAFKAS} is what is done"))
    if bool(own.get("ssl.keystore.key")) != bool(own.get("ssl.keystore.certificate.chain")):
        found.append(("ssl.keystore.key", "goes together with ssl.keystore.certificate.chain"))
    return found + (_wrong_login(made) if made.protocol in SASL else [])


_KAFKAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def _wrong_login(made: ClientSecurity) -> list[tuple[str, str]]:
    if made.mechanism not in MECHANISMS:
        return [(MECHANISM, f"a listener with SASL wants one of {', '.join(MECHANISMS)}")]
    if made.mechanism == BEARER:
        url = made.settings.get(TOKEN_URL, "")
        if not url.startswith(("file:///", "https://")):
            return [(TOKEN_URL, "file:///PATH of a token, or https://… of who gives tokens")]
    elif made.login is None:
        return [(JAAS, 'has no username="…" and password="…"')]
    return []


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
