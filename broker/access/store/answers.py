"""Answers of a store that are failures, as errors of the port.

The library's texts hold whole answers, which repeat what was sent: of a session's token, too. So
none of it gets on: a status, a code of letters, or one of our own reasons.
"""

import re

from storage.tier.port import (
    ObjectExists,
    ObjectMissing,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
    StoreTimedOut,
)

PUT_NEW, PUT_FILE, GET, LIST, DELETE = "put_new", "put_file", "get", "list", "delete"
_STATUS = re.compile(r"status code: (\d{3})\b")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,64})</Code>|\(code: ([A-Za-z0-9]{1,64})\)")
_DENIED = frozenset((
    "AccessDenied", "AllAccessDisabled", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken",
    "NoSuchBucket", "SignatureDoesNotMatch", "TokenRefreshRequired",
))  # fmt: skip
_THROTTLED = frozenset((
    "BandwidthLimitExceeded", "RequestLimitExceeded", "RequestThrottled", "SlowDown", "Throttling",
    "ThrottlingException", "TooManyRequests",
))  # fmt: skip
_NO_TIME, _CUT = "it did not answer in time", "the connection ended before the answer did"
_REASONS: tuple[tuple[str, type[StoreError], str], ...] = (
    ("TimedOut", StoreTimedOut, _NO_TIME),
    ("kind: Timeout", StoreTimedOut, _NO_TIME),
    ("dns error", StoreAway, "its host has no address"),
    ("InvalidCertificate", StoreError, "its certificate is not trusted"),
    ("kind: Connect", StoreAway, "it cannot be reached"),
    ("Incomplete", StoreAway, _CUT),
    ("kind: Interrupted", StoreAway, _CUT),
    ("redirect without LOCATION", StoreError, "the bucket is in another region"),
    ("External AWS credential provider", StoreDenied, "the file of credentials cannot be used"),
)
"""Words in the library's texts, and what they say."""
_UNKNOWN = StoreError, "its answer is not one of S3"


def error_of(failure: Exception, key: str, operation: str) -> StoreError:
    """The port's error for one of the library's."""
    text = str(failure)
    status, code = _status(text), _code(text)
    if not (status or code):
        found = ((kind, reason) for words, kind, reason in _REASONS if words in text)
        kind, reason = next(found, _UNKNOWN)
        if type(failure).__name__ == "UnauthenticatedError":
            kind = StoreDenied
        return kind(key, operation, reason)
    reason = " ".join(filter(None, (f"status {status}" if status else "", code)))
    return _kind(status, code, operation)(key, operation, reason)


def _kind(status: int, code: str, operation: str) -> type[StoreError]:
    """Certain outcomes only where the store itself has named them.

    A proxy's 404 does not say that an object is lost. A 409 of concurrent puts (Amazon's
    ConditionalRequestConflict) does not say that one of them was done.
    """
    if status == 412 and operation == PUT_NEW:
        return ObjectExists
    if code == "NoSuchKey" and operation == GET:
        return ObjectMissing
    if status in {401, 403} or code in _DENIED:
        return StoreDenied
    if status == 429 or code in _THROTTLED:
        return StoreThrottled
    return StoreError


def _status(text: str) -> int:
    found = _STATUS.search(text)
    return int(found[1]) if found else 0


def _code(text: str) -> str:
    found = _CODE.search(text)
    return (found[1] or found[2]) if found else ""
