"""Fetch sessions (KIP-227): the partitions a consumer follows, remembered between its fetches.

With a session, request and response name only what changed. The cache is bounded by sessions, by
the partitions in them all and by the bytes of these, so that no crowd of clients can fill the
memory. A new session takes the place of one unused for two minutes, else of a smaller one that has
lived for two minutes; else the client gets none and sends full requests (Kafka's FetchSession
rules).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from broker.runtime.connection_limits import UNLIMITED
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock, Rng

MAX_SESSIONS = 1000
MAX_PARTITIONS = 500_000
FOLLOWED_BYTES = 400
"""About what a followed partition takes beside the topic's name."""
EVICTION_SECONDS = 120.0
MAX_EPOCH = 2**31 - 1

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1

PartitionKey = tuple[str, UUID, int]  # name or id is empty, as the request's version has it


@dataclass(slots=True)
class FollowedPartition:
    """A client's request for one partition, and the last answer about it."""

    topic: str
    topic_id: UUID
    index: int
    fetch_offset: int
    max_bytes: int
    leader_epoch: int
    last_fetched_epoch: int = -1
    sent_high_watermark: int = -1
    sent_log_start_offset: int = -1

    @property
    def key(self) -> PartitionKey:
        """Identity within a session."""
        return self.topic, self.topic_id, self.index

    @property
    def size_bytes(self) -> int:
        """About what it takes in memory; a name need not be that of a topic."""
        return FOLLOWED_BYTES + len(self.topic)

    def asks(self, newer: "FollowedPartition") -> None:
        """Takes over a newer request for the same partition; the facts of the last answer stay."""
        if (newer.leader_epoch, newer.last_fetched_epoch) != (
            self.leader_epoch,
            self.last_fetched_epoch,
        ):
            self.sent_high_watermark = -1  # the epochs are to be checked again
        self.fetch_offset = newer.fetch_offset
        self.max_bytes = newer.max_bytes
        self.leader_epoch = newer.leader_epoch
        self.last_fetched_epoch = newer.last_fetched_epoch


class FetchSession:
    """One client's session. `epoch` is the one its next request must carry."""

    __slots__ = (
        "by_topic_id",
        "created",
        "epoch",
        "partitions",
        "session_id",
        "size_bytes",
        "used",
    )

    def __init__(
        self, session_id: int, partitions: Iterable[FollowedPartition], now: float, *, by_id: bool
    ) -> None:
        """A new session whose first incremental request carries epoch 1."""
        self.session_id = session_id
        self.epoch = 1
        self.partitions = {partition.key: partition for partition in partitions}
        self.size_bytes = sum(each.size_bytes for each in self.partitions.values())
        self.created = now
        self.used = now
        self.by_topic_id = by_id

    def served(self, key: PartitionKey) -> None:
        """Data of this partition went out: the others come first next time."""
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self.partitions[key] = partition


class FetchSessions:
    """The bounded cache of sessions. Used from the event loop only."""

    def __init__(
        self,
        clock: Clock,
        rng: Rng,
        max_sessions: int = MAX_SESSIONS,
        max_partitions: int = MAX_PARTITIONS,
        max_bytes: int = UNLIMITED,
    ) -> None:
        """Empty; `max_sessions` 0 turns sessions off."""
        self._clock = clock
        self._rng = rng
        self._max_sessions = max_sessions
        self._max_partitions = max_partitions
        self._max_bytes = max_bytes
        self.size_bytes: int = 0
        """Memory of all sessions, in bytes."""
        self.refusals: int = 0
        """Sessions that were not begun, or ended, for want of memory."""
        self._sessions: dict[int, FetchSession] = {}  # least recently used first
        self._partition_count = 0

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Number of partitions that all sessions follow."""
        return self._partition_count

    def create(
        self, partitions: Sequence[FollowedPartition], *, by_id: bool
    ) -> FetchSession | None:
        """A session for a client that sent a full request; None when there is no room for it."""
        size_bytes = sum(each.size_bytes for each in partitions)
        if not self._make_room(len(partitions), size_bytes):
            return None
        session = FetchSession(self._unused_id(), partitions, self._clock.monotonic(), by_id=by_id)
        self._sessions[session.session_id] = session
        self._partition_count += len(session.partitions)
        self.size_bytes += session.size_bytes
        return session

    def resume(self, session_id: int, epoch: int, *, by_id: bool) -> FetchSession:
        """The session of an incremental request, its epoch advanced.

        Raises FETCH_SESSION_ID_NOT_FOUND (70), INVALID_FETCH_SESSION_EPOCH (71) or
        FETCH_SESSION_TOPIC_ID_ERROR (106); the client then starts over with a full request.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"No fetch session {session_id}")
        if session.epoch != epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"Fetch session {session_id} expected epoch {session.epoch}, not {epoch}",
            )
        if session.by_topic_id != by_id:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"Fetch session {session_id} changed between topic names and topic ids",
            )
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.used = self._clock.monotonic()
        self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def update(
        self,
        session: FetchSession,
        changed: Iterable[FollowedPartition],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Applies the changes that an incremental request carries.

        A session that grows over the bound ends with FETCH_SESSION_ID_NOT_FOUND (70).
        """
        partitions = session.partitions
        before, bytes_before = len(partitions), session.size_bytes
        for partition in changed:
            known = partitions.get(partition.key)
            if known is None:
                partitions[partition.key] = partition
                session.size_bytes += partition.size_bytes
            else:
                known.asks(partition)
        for key in forgotten:
            gone = partitions.pop(key, None)
            if gone is not None:
                session.size_bytes -= gone.size_bytes
        self._partition_count += len(partitions) - before
        self.size_bytes += session.size_bytes - bytes_before
        is_too_much = self.size_bytes > self._max_bytes
        if is_too_much or self._partition_count > self._max_partitions:
            self.refusals += is_too_much
            self.close(session.session_id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, "The fetch session is too large")

    def close(self, session_id: int) -> None:
        """The client ends the session, or starts over; unknown ids are ignored."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session.partitions)
            self.size_bytes -= session.size_bytes

    def _make_room(self, size: int, size_bytes: int) -> bool:
        if size_bytes > self._max_bytes:
            self.refusals += 1
            return False
        while (
            len(self._sessions) >= self._max_sessions
            or self.partition_count + size > self._max_partitions
            or self.size_bytes + size_bytes > self._max_bytes
        ):
            victim = self._victim(size)
            if victim is None:
                self.refusals += self.size_bytes + size_bytes > self._max_bytes
                return False
            self.close(victim.session_id)
        return True

    def _victim(self, size: int) -> FetchSession | None:
        now = self._clock.monotonic()
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.used > EVICTION_SECONDS:
            return oldest
        settled = [s for s in self._sessions.values() if now - s.created > EVICTION_SECONDS]
        smallest = min(settled, key=lambda session: len(session.partitions), default=None)
        if smallest is None or len(smallest.partitions) >= size:
            return None
        return smallest

    def _unused_id(self) -> int:
        while True:
            session_id = self._rng.below(MAX_EPOCH) + 1
            if session_id not in self._sessions:
                return session_id
