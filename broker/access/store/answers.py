"""Answers of a store that are failures, as errors of the port.

The library's texts hold whole answers, which repeat what was sent: of a session's token, too. So
none of it gets on: a status, a code of letters, or one of our own reasons.
"""

import re

from storage.tier.port import ObjectExists, ObjectMissing, StoreDenied, StoreError

PUT_NEW, PUT_FILE, GET, LIST, DELETE = "put_new", "put_file", "get", "list", "delete"
_STATUS = re.compile(r"status code: (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>|\(code: ([A-Za-z0-9]{1,64})\)")
_DENIED = frozenset((
    "AccessDenied", "AllAccessDisabled", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
    "NoSuchBucket", "SignatureDoesNotMatch", "TokenRefreshRequired",
))  # fmt: skip
_REASONS = (
    ("TimedOut", "it did not answer in time"),
    ("kind: Timeout", "it did not answer in time"),
    ("dns error", "its host has no address"),
    ("InvalidCertificate", "its certificate is not trusted"),
    ("kind: Connect", "it cannot be reached"),
    ("Incomplete", "the connection ended before the answer did"),
    ("kind: Interrupted", "the connection ended before the answer did"),
    ("redirect without LOCATION", "the bucket is in another region"),
    ("External AWS credential provider", "the file of credentials cannot be used"),
)
"""Words in the library's texts, and what they say."""


def error_of(failure: Exception, key: str, operation: str) -> StoreError:
    """The port's error for one of the library's."""
    text = str(failure)
    status, code = _status(text), _code(text)
    kind = _kind(type(failure).__name__, status, code, operation)
    return kind(key, operation, _reason(text, status, code))


def _kind(name: str, status: int, code: str, operation: str) -> type[StoreError]:
    """Certain outcomes only where the store itself has named them.

    A proxy's 404 does not say that an object is lost. A 409 of concurrent puts (Amazon's
    ConditionalRequestConflict) does not say that one of them was done.
    """
    if status == 412 and operation == PUT_NEW:
        return ObjectExists
    if code == "NoSuchKey" and operation == GET:
        return ObjectMissing
    if status in {401, 403} or code in _DENIED or name == "UnauthenticatedError":
        return StoreDenied
    return StoreError


def _reason(text: str, status: int, code: str) -> str:
    if status or code:
        return " ".join(filter(None, (f"status {status}" if status else "", code)))
    found = (reason for words, reason in _REASONS if words in text)
    return next(found, "its answer is not one of S3")


def _status(text: str) -> int:
    found = _STATUS.search(text)
    return int(found[1]) if found else 0


def _code(text: str) -> str:
    found = _CODE.search(text)
    return (found[1] or found[2]) if found else ""
