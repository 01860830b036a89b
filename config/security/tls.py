"""The settings of TLS (`ssl.*`), and the typed snapshot that each listener with TLS has of them.

`listener.name.NAME.ssl.KEY`, NAME in small letters, wins over `ssl.KEY`. Names and defaults are
Kafka's, but for the type of keys: PEM.
"""

from dataclasses import dataclass

from config.declare import broker_key
from config.values import Choice, Flag, KafkaType, Text, Words

CLIENT_AUTH = "ssl.client.auth"
TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
RENEWABLE = frozenset(
    (
        *(f"ssl.keystore.{name}" for name in ("type", "location", "password", "key")),
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        *(f"ssl.truststore.{name}" for name in ("type", "location", "password", "certificates")),
    )
)
"""Keys that may change while the broker runs, for one listener alone (Kafka's
`SslConfigs.RECONFIGURABLE_CONFIGS`).
"""
PEM, PKCS12 = "PEM", "PKCS12"
_CONVERT = (
    "keytool -importkeystore -srckeystore FILE -destkeystore keys.p12 -deststoretype PKCS12, and "
    "set the type PKCS12"
)


@dataclass(frozen=True, slots=True)
class StoreType:
    """PEM or PKCS12; Kafka's JKS is refused with the command that converts it."""

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> str:
        """ValueError for any other."""
        word = text.strip().upper()
        if word == "JKS":
            raise ValueError(f"JKS is not read: convert it: {_CONVERT}")
        if word not in (PEM, PKCS12):
            raise ValueError(f"{text!r} is not PEM or PKCS12")
        return word

    def canonical(self, text: str) -> str:
        """In capitals."""
        return self.parse(text)

    def bounds(self) -> str:
        """For the documentation."""
        return "PEM or PKCS12"


@dataclass(frozen=True, slots=True)
class Block:
    """Text of one or more lines, which no refusal quotes: it may be a secret."""

    shape: str

    @property
    def kafka_type(self) -> KafkaType:
        """Kafka reports these as PASSWORD."""
        return KafkaType.PASSWORD

    def parse(self, text: str) -> str:
        """Without blanks around it."""
        return text.strip()

    def canonical(self, text: str) -> str:
        """Without blanks around it."""
        return text.strip()

    def bounds(self) -> str:
        """For the documentation."""
        return self.shape


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """The TLS settings of one listener."""

    keystore_type: str = broker_key(
        "ssl.keystore.type",
        StoreType(),
        "PEM",
        doc="Format of the broker's certificate and key (Kafka's default: JKS).",
    )
    keystore_location: str = broker_key(
        "ssl.keystore.location",
        Text(),
        "",
        importance="high",
        doc="File with a listener's private key, its certificate and those of authorities in "
        "between; read again each minute and at SIGHUP. Others must not be able to read it.",
    )
    keystore_password: str = broker_key(
        "ssl.keystore.password",
        Block("any text"),
        "",
        importance="high",
        sensitive=True,
        doc="Password of a PKCS12 file; PEM files have none, see ssl.key.password.",
    )
    keystore_key: str = broker_key(
        "ssl.keystore.key",
        Block("a private key in PEM"),
        "",
        sensitive=True,
        doc="The private key itself, in place of ssl.keystore.location.",
    )
    keystore_certificate_chain: str = broker_key(
        "ssl.keystore.certificate.chain",
        Block("certificates in PEM"),
        "",
        sensitive=True,
        doc="The certificate that belongs to ssl.keystore.key, and those of intermediate "
        "authorities.",
    )
    key_password: str = broker_key(
        "ssl.key.password",
        Block("any text"),
        "",
        importance="high",
        sensitive=True,
        doc="Password of an encrypted private key.",
    )
    truststore_type: str = broker_key(
        "ssl.truststore.type",
        StoreType(),
        "PEM",
        doc="Format of the certificates of authorities (Kafka's default: JKS).",
    )
    truststore_location: str = broker_key(
        "ssl.truststore.location",
        Text(),
        "",
        importance="high",
        doc="File with the certificates of authorities that clients' certificates come from.",
    )
    truststore_password: str = broker_key(
        "ssl.truststore.password",
        Block("any text"),
        "",
        importance="high",
        sensitive=True,
        doc="Password of a PKCS12 file; PEM files have none.",
    )
    truststore_certificates: str = broker_key(
        "ssl.truststore.certificates",
        Block("certificates in PEM"),
        "",
        sensitive=True,
        doc="These certificates themselves, in place of ssl.truststore.location.",
    )
    client_auth: str = broker_key(
        CLIENT_AUTH,
        Choice(("none", "requested", "required")),
        "none",
        doc="Whether clients show a certificate: none is asked for, one is checked if it comes "
        "(requested), or no client is served without one (required).",
    )
    principal_mapping_rules: str = broker_key(
        "ssl.principal.mapping.rules",
        Text(),
        "DEFAULT",
        doc="Users by the subjects of certificates: DEFAULT takes the subject, RULE:pattern/text/ "
        "(behind it L, U, or nothing) one that matches as a whole; the first counts, none refuses.",
    )
    enabled_protocols: frozenset[str] = broker_key(
        "ssl.enabled.protocols",
        Words((TLS_1_2, TLS_1_3)),
        frozenset((TLS_1_2, TLS_1_3)),
        doc="Versions of TLS that are spoken.",
    )
    cipher_suites: str = broker_key(
        "ssl.cipher.suites",
        Text(r"[A-Z0-9_, ]*", "a list of cipher suites such as TLS_AES_128_GCM_SHA256"),
        "",
        importance="low",
        doc="Cipher suites by their IANA names, separated by commas; empty: those that OpenSSL "
        "holds to be safe. TLS 1.3 is spoken with all of its three or not at all.",
    )

    allow_dn_changes: bool = broker_key(
        "ssl.allow.dn.changes",
        Flag(),
        False,
        importance="low",
        doc="Allow a renewed certificate another subject while the broker runs.",
    )
    allow_san_changes: bool = broker_key(
        "ssl.allow.san.changes",
        Flag(),
        False,
        importance="low",
        doc="Allow a renewed certificate to lose alternative names while the broker runs.",
    )

    @property
    def key_source(self) -> str:
        """The place of key and certificate, as refusals name it."""
        return self.keystore_location or "ssl.keystore.key"

    @property
    def trust_source(self) -> str:
        """The place of the authorities' certificates, likewise; empty without any."""
        if self.truststore_location:
            return self.truststore_location
        return "ssl.truststore.certificates" if self.truststore_certificates else ""


def what_is_missing(config: TlsConfig) -> tuple[str, str] | None:
    """The key and the reason, without which a listener cannot have TLS."""
    store = _what_is_wrong_with_stores(config)
    if store is not None:
        return store
    at, key, chain = (
        config.keystore_location,
        config.keystore_key,
        config.keystore_certificate_chain,
    )
    if at and (key or chain):
        return "ssl.keystore.location", "a location and ssl.keystore.key are two keys: leave one"
    if not at and not (key or chain):
        return (
            "ssl.keystore.location",
            "TLS needs a certificate: name a PEM file with key and chain",
        )
    if not at and not (key and chain):
        return "ssl.keystore.key", "ssl.keystore.key and ssl.keystore.certificate.chain go together"
    if config.truststore_location and config.truststore_certificates:
        return "ssl.truststore.location", "ssl.truststore.certificates is set too: leave one"
    if config.client_auth != "none" and not config.trust_source:
        return (
            CLIENT_AUTH,
            "certificates of clients are checked against authorities: set ssl.truststore.location",
        )
    return None


def _what_is_wrong_with_stores(config: TlsConfig) -> tuple[str, str] | None:
    """A type that does not go with the rest."""
    inline = config.keystore_key or config.keystore_certificate_chain
    if config.keystore_type == PKCS12 and inline:
        return "ssl.keystore.type", "ssl.keystore.key is PEM, and a PKCS12 store is a file"
    if config.truststore_type == PKCS12 and config.truststore_certificates:
        return (
            "ssl.truststore.type",
            "ssl.truststore.certificates are PEM, a PKCS12 store is a file",
        )
    if config.keystore_type == PEM and config.keystore_password:
        return (
            "ssl.keystore.password",
            "PEM files have no password of their own: ssl.key.password is that of the private key",
        )
    if config.truststore_type == PEM and config.truststore_password:
        return "ssl.truststore.password", "certificates in PEM have no password: leave it out"
    return None
