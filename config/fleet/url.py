"""The place of a fleet's catalog: a database of PostgreSQL, without a password in it."""

from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qs, urlsplit

from config.values import KafkaType

SCHEMES = ("postgresql", "postgres")
ENCRYPTED = ("require", "verify-ca", "verify-full")
LOCAL = ("localhost", "127.0.0.1", "::1")
_SHAPE = "postgresql://user@host:port/database?sslmode=verify-full"


@dataclass(frozen=True, slots=True)
class CatalogUrl:
    """Servers of one database, tried in their order."""

    text: str
    is_private: bool
    """Nobody on the way can read along: it is encrypted, or does not leave the machine."""

    def __str__(self) -> str:
        """As the setting writes it."""
        return self.text


@dataclass(frozen=True, slots=True)
class OptionalCatalogUrl:
    """One URL of PostgreSQL, or empty for none.

    No refusal repeats the text: a password may have been written into it.
    """

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> CatalogUrl | None:
        """ValueError naming the part that is wrong; None for the empty text."""
        text = text.strip()
        return _parsed(text) if text else None

    def canonical(self, text: str) -> str:
        """Without blanks around it."""
        return str(self.parse(text) or "")

    def bounds(self) -> str:
        """For the documentation."""
        return f"{_SHAPE}, or empty for none"


def _parsed(text: str) -> CatalogUrl:
    url = urlsplit(text)
    if url.scheme not in SCHEMES:
        raise ValueError(f"must begin with {SCHEMES[0]}://: {_SHAPE}")
    user = url.netloc.rpartition("@")[0]
    if ":" in user or "password" in parse_qs(url.query):
        raise ValueError(
            f"no password belongs into a URL: write {_SHAPE}; it comes from the file that "
            "PGPASSFILE names, or from PGPASSWORD"
        )
    if url.fragment or not url.path.strip("/"):
        raise ValueError(f"must name a database, and nothing behind its options: {_SHAPE}")
    return CatalogUrl(text, _is_private(url))


def _is_private(url: SplitResult) -> bool:
    options = parse_qs(url.query)
    if options.get("sslmode", [""])[-1] in ENCRYPTED:
        return True
    named = [_host(each) for each in url.netloc.rpartition("@")[2].split(",")]
    hosts = [host for host in (*named, *options.get("host", ())) if host]
    return all(host.startswith("/") or host in LOCAL for host in hosts)


def _host(place: str) -> str:
    if place.startswith("["):
        return place[1:].partition("]")[0]
    return place.rpartition(":")[0] if ":" in place else place
