"""Share sessions (KIP-932): the partitions that a member of a share group fetches from.

One for each group and member, begun by a fetch with epoch 0; each request carries the next epoch.
A session ends with its connection. Bounded by their number (`group.share.max.share.sessions`) and
by partitions, which nobody checks before they are fetched: in a session, those of a connection, and
all of them.
"""

from collections.abc import Callable, Iterable
from uuid import UUID

from protocol.errors import ErrorCode, KafkaError

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1
MAX_PARTITIONS, MAX_OF_CONNECTION, MAX_OF_SESSION = 500_000, 50_000, 10_000
"""As many share partitions as one member has are served at all (`MAX_SERVED`)."""

SharedPlace = tuple[UUID, int]
"""Topic id and index of a partition."""


class ShareSession:
    """One member's session. `epoch` is the one that its next request must carry."""

    __slots__ = ("connection_id", "epoch", "group", "member", "partitions")

    def __init__(self, group: str, member: str, connection_id: int) -> None:
        """A session without partitions, as it is after its first request."""
        self.group = group
        self.member = member
        self.connection_id = connection_id
        self.epoch = INITIAL_EPOCH + 1
        self.partitions: dict[SharedPlace, None] = {}

    def in_turn(self) -> list[SharedPlace]:
        """The partitions, from another one on with each epoch."""
        places = list(self.partitions)
        at = self.epoch % len(places) if places else 0
        return places[at:] + places[:at]


class ShareSessions:
    """All share sessions. Used from the event loop only."""

    def __init__(self, max_sessions: Callable[[], int]) -> None:
        """Without sessions."""
        self._max_sessions = max_sessions
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._of_connection: dict[int, set[ShareSession]] = {}
        self._of_group: dict[str, int] = {}
        self.followed = 0
        """Partitions in all sessions."""

    def __len__(self) -> int:
        """Number of sessions."""
        return len(self._sessions)

    def begin(
        self, group: str, member: str, connection_id: int, places: Iterable[SharedPlace]
    ) -> ShareSession:
        """A new session, in place of the member's old one. SHARE_SESSION_LIMIT_REACHED (133)."""
        old = self._sessions.get((group, member))
        if old is not None:
            self.end(old)
        if len(self) >= self._max_sessions():
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        session = ShareSession(group, member, connection_id)
        self.follow(session, places, ())
        self._sessions[group, member] = session
        self._of_connection.setdefault(connection_id, set()).add(session)
        self._of_group[group] = self._of_group.get(group, 0) + 1
        return session

    def follow(
        self, session: ShareSession, more: Iterable[SharedPlace], less: Iterable[SharedPlace]
    ) -> None:
        """Drops partitions of a session, and adds others, all or none.

        SHARE_SESSION_LIMIT_REACHED (133).
        """
        partitions = session.partitions
        before = len(partitions)
        for place in less:
            partitions.pop(place, None)
        self.followed += len(partitions) - before
        new = dict.fromkeys(place for place in more if place not in partitions)
        if new and len(new) > self._room_of(session):
            raise KafkaError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        partitions.update(new)
        self.followed += len(new)

    def _room_of(self, session: ShareSession) -> int:
        of_connection = self.of_connection(session.connection_id)
        return min(
            MAX_PARTITIONS - self.followed,
            MAX_OF_CONNECTION - sum(len(each.partitions) for each in of_connection),
            MAX_OF_SESSION - len(session.partitions),
        )

    def find(self, group: str, member: str) -> ShareSession:
        """A session that must be there: SHARE_SESSION_NOT_FOUND (122)."""
        session = self._sessions.get((group, member))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        return session

    def resume(self, group: str, member: str, epoch: int) -> ShareSession:
        """A session that goes on with its next epoch; INVALID_SHARE_SESSION_EPOCH (123)."""
        session = self.find(group, member)
        if session.epoch != epoch:
            raise KafkaError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = INITIAL_EPOCH + 1 if epoch == MAX_EPOCH else epoch + 1
        return session

    def lives(self, session: ShareSession) -> bool:
        """False when it ended, or another one took its place."""
        return self._sessions.get((session.group, session.member)) is session

    def end(self, session: ShareSession) -> None:
        """Forgets a session."""
        if not self.lives(session):
            return
        del self._sessions[session.group, session.member]
        self.followed -= len(session.partitions)
        self._of_group[session.group] -= 1
        if not self._of_group[session.group]:
            del self._of_group[session.group]
        of_connection = self._of_connection[session.connection_id]
        of_connection.discard(session)
        if not of_connection:
            del self._of_connection[session.connection_id]

    def has_any(self, group: str) -> bool:
        """True while some member of the group has a session."""
        return group in self._of_group

    def count_of(self, group: str) -> int:
        """Number of the group's sessions."""
        return self._of_group.get(group, 0)

    def of_connection(self, connection_id: int) -> list[ShareSession]:
        """The sessions that a connection began."""
        return list(self._of_connection.get(connection_id, ()))
