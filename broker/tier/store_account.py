"""Counts of what was asked of the store: requests, bytes and errors, as a store's bill has them."""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from threading import Lock
from typing import NamedTuple

from broker.runtime.probes import MAX_TOPICS, OTHERS
from storage.tier.names import CARD, CLUSTER, TOPICS, is_probe, topic_of
from storage.tier.port import (
    ObjectMissing,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
    StoreTimedOut,
)


class Purpose(StrEnum):
    """Purposes of requests."""

    COPY = "copy"
    """Segments on their way up, and back for comparison."""
    READ = "read"
    """Segments for fetches, searches and compaction."""
    MANIFEST = "manifest"
    CLUSTER = "cluster"
    """The tier's card, topics and settings, and the proof of what the store does."""
    SWEEP = "sweep"
    REMOVAL = "removal"


class StoreRequest(StrEnum):
    """Kinds of requests."""

    PUT = "put"
    GET = "get"
    LIST = "list"
    DELETE = "delete"


class StoreFault(StrEnum):
    """Kinds of errors."""

    AWAY = "away"
    """It cannot be reached, or the connection ended before the answer did."""
    TIMED_OUT = "timed_out"
    THROTTLED = "throttled"
    DENIED = "denied"
    """It refuses the credentials, or the bucket."""
    LOST = "lost"
    """It has no object of a name that was there."""
    SPOILT = "spoilt"
    """It has answered other bytes than were sent, or fewer."""
    REFUSED = "refused"
    """Any other error, or an answer that is not one of S3."""


_FAULTS: tuple[tuple[type[StoreError], StoreFault], ...] = (
    (StoreAway, StoreFault.AWAY),
    (StoreTimedOut, StoreFault.TIMED_OUT),
    (StoreThrottled, StoreFault.THROTTLED),
    (StoreDenied, StoreFault.DENIED),
    (ObjectMissing, StoreFault.LOST),
)


def fault_of(error: StoreError) -> StoreFault:
    """The kind of an error of the port."""
    return next((fault for kind, fault in _FAULTS if isinstance(error, kind)), StoreFault.REFUSED)


def purpose_of(key: str, otherwise: Purpose) -> Purpose:
    """The purpose of a request for this object; `otherwise` where its name does not tell."""
    if key.startswith(CLUSTER) or key == CARD or is_probe(key):
        return Purpose.CLUSTER
    if key.startswith(TOPICS) and "/manifest/" in key:
        return Purpose.MANIFEST
    return otherwise


class TopicKind(StrEnum):
    """Kinds of what Kafka counts by topic."""

    COPIES = "copies"
    """Segments that were begun to be sent."""
    COPIED_BYTES = "copied bytes"
    FAILED_COPIES = "failed copies"
    READS = "reads"
    READ_BYTES = "read bytes"
    FAILED_READS = "failed reads"
    DELETIONS = "deletions"
    """Segments."""
    FAILED_DELETIONS = "failed deletions"


class RequestKind(NamedTuple):
    """One kind of requests with one purpose."""

    purpose: Purpose
    request: StoreRequest


class StoreAccount:
    """Written by all threads that ask the store; read by the scrape from its own.

    The topics that came first have numbers of their own, deleted ones too, so that none ever falls;
    all others share those of `OTHERS`.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        """Nothing was asked."""
        self._monotonic = monotonic
        self._gate = Lock()
        self._requests: Counter[RequestKind] = Counter()
        self._bytes: Counter[RequestKind] = Counter()
        self._errors: Counter[tuple[StoreRequest, StoreFault]] = Counter()
        self._by_topic: Counter[tuple[str, TopicKind]] = Counter()
        self._topics: set[str] = set()
        self._failing_since: float | None = None
        self.damaged_reads = 0
        """Reads that were refused: an object is lost, or not what was copied, asked twice."""

    # --- what happens ---

    def asked(self, what: RequestKind, requests: int = 1) -> None:
        """So many requests go out."""
        with self._gate:
            self._requests[what] += requests

    def answered(self, what: RequestKind, size_bytes: int = 0) -> None:
        """The store did it; so many bytes of content went there, or came."""
        with self._gate:
            self._failing_since = None
            self._bytes[what] += size_bytes

    def failed(self, what: RequestKind, fault: StoreFault) -> None:
        """The store did not do it, or did not say. A loss is an answer, too."""
        with self._gate:
            self._errors[what.request, fault] += 1
            if fault is StoreFault.LOST:
                self._failing_since = None
            elif self._failing_since is None:
                self._failing_since = self._monotonic()

    def of_topic(self, key: str, kind: TopicKind, number: int = 1) -> None:
        """Counts it for the topic of an object, if it has one."""
        topic = topic_of(key)
        if topic is None:
            return
        with self._gate:
            if topic not in self._topics and len(self._topics) < MAX_TOPICS:
                self._topics.add(topic)
            self._by_topic[topic if topic in self._topics else OTHERS, kind] += number

    # --- as storage tells of it ---

    def spoilt(self, key: str) -> None:  # noqa: ARG002 - the call of a port
        """An answer had other bytes than were copied: it may be asked for again."""
        with self._gate:
            self._errors[StoreRequest.GET, StoreFault.SPOILT] += 1

    def damaged(self, key: str) -> None:
        """A read was refused: the object is lost, or not what was copied."""
        with self._gate:
            self.damaged_reads += 1
        self.of_topic(key, TopicKind.FAILED_READS)

    # --- what is shown ---

    @property
    def requests(self) -> Mapping[RequestKind, int]:
        """Requests by purpose and kind."""
        return self._requests.copy()

    @property
    def size_bytes(self) -> Mapping[RequestKind, int]:
        """Bytes of objects by purpose and kind, of requests that succeeded."""
        return {what: size for what, size in self._bytes.copy().items() if size}

    @property
    def errors(self) -> Mapping[tuple[StoreRequest, StoreFault], int]:
        """Errors by kind of request."""
        return self._errors.copy()

    def by_topic(self, kind: TopicKind) -> Mapping[str, int]:
        """Numbers of each topic; `OTHERS` among them."""
        return {name: n for (name, each), n in self._by_topic.copy().items() if each is kind}

    @property
    def failing_seconds(self) -> float:
        """Time since the first of the requests in a row that failed; 0 when the last did not."""
        since = self._failing_since
        return 0.0 if since is None else self._monotonic() - since
