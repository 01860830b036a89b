"""Ways in which a request to an object store goes wrong, and what they look like on the wire."""

from collections.abc import Mapping
from enum import Enum, auto
from typing import NamedTuple


class Way(Enum):
    """Outcome of a request."""

    REFUSED = auto()
    """Its connection is reset, and new ones are refused for a while."""
    RESET_BEFORE = auto()
    """Its connection is reset; the store has not seen it."""
    LOST_ANSWER = auto()
    """The store did it; its connection is reset before the answer."""
    HALF_ANSWER = auto()
    """The store did it; its connection ends in the middle of the answer."""
    OTHER_BYTES = auto()
    """The request, or the answer, has a byte that is another."""
    DENIED = auto()
    WRONG_KEYS = auto()
    EXPIRED = auto()
    MISSING = auto()
    """The object that is there is not."""
    SLOW_DOWN = auto()
    TOO_MANY = auto()
    INTERNAL = auto()
    NOT_S3 = auto()
    """A gateway answers, with a page for people."""
    HANGS = auto()
    """No answer, as long as the client waits."""
    DRIPS = auto()
    """The answer comes byte by byte, within the client's time."""


class Refusal(NamedTuple):
    """An answer instead of the store's."""

    status: int
    code: str
    headers: Mapping[str, str] = {}

    @property
    def body(self) -> bytes:
        """As S3 writes errors; a page where there is no code."""
        if not self.code:
            return b"<html><body><h1>502 Bad Gateway</h1></body></html>"
        return (
            b'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>%s</Code>'
            b"<Message>told so by a test</Message></Error>" % self.code.encode()
        )


RETRY_AFTER = {"Retry-After": "1"}
REFUSALS: Mapping[Way, Refusal] = {
    Way.DENIED: Refusal(403, "AccessDenied"),
    Way.WRONG_KEYS: Refusal(403, "InvalidAccessKeyId"),
    Way.EXPIRED: Refusal(400, "ExpiredToken"),
    Way.MISSING: Refusal(404, "NoSuchKey"),
    Way.SLOW_DOWN: Refusal(503, "SlowDown", RETRY_AFTER),
    Way.TOO_MANY: Refusal(429, "TooManyRequests", RETRY_AFTER),
    Way.INTERNAL: Refusal(500, "InternalError"),
    Way.NOT_S3: Refusal(502, ""),
}


def is_possible(way: Way, step: str) -> bool:
    """False for what no store or network does: a missing object is one that is read."""
    return way is not Way.MISSING or step.startswith("get")


def spoilt(body: bytes, *, is_text: bool) -> bytes:
    """Other bytes of the same length; of a text, such that it is none any longer.

    A text that says something else would be a lying store: nothing in it can be checked.
    """
    if not body:
        return body
    middle = len(body) // 2
    other = b"\0" if is_text else bytes([body[middle] ^ 0x10])
    return body[:middle] + other + body[middle + 1 :]
