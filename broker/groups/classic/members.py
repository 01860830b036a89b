"""A member of a group: who it is, what it can, what it waits for.

Values in ms. What waits is answered once: `answer_join` and `answer_sync` give nothing to a member
that does not wait.
"""

from collections.abc import Sequence
from typing import NamedTuple

from broker.runtime.deadlines import Deadline
from broker.runtime.deferred import Deferred


class Protocol(NamedTuple):
    """A way of assigning that a member knows, and what it says of itself in that way."""

    name: str
    metadata: bytes


class MemberView(NamedTuple):
    """A member as the leader receives it."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class MemberClaim(NamedTuple):
    """Identity and generation that a client claims."""

    member_id: str
    instance_id: str | None
    generation: int


class JoinResult(NamedTuple):
    """Result of a join; `members` is for the leader only."""

    error: int
    member_id: str
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: Sequence[MemberView] = ()
    skip_assignment: bool = False


class SyncResult(NamedTuple):
    """Result of a sync."""

    error: int
    assignment: bytes = b""
    protocol_type: str | None = None
    protocol_name: str | None = None


class Joining(NamedTuple):
    """Facts that a member sends when it joins; time-outs in ms."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    needs_known_id: bool
    """A member without an id is first given one (KIP-394)."""
    may_skip_assignment: bool
    """Its version knows `skip_assignment` (KIP-814)."""
    reason: str = ""

    @property
    def names_one_twice(self) -> bool:
        """True when two of its protocols have one name."""
        return len({each.name for each in self.protocols}) < len(self.protocols)


class Footprint:
    """Memory of the members of all groups, in bytes."""

    __slots__ = ("total_bytes",)

    def __init__(self) -> None:
        """There are none."""
        self.total_bytes = 0

    def count(self, member: "Member") -> None:
        """A member is there, or says more or less than before."""
        size = member.size_bytes
        self.total_bytes += size - member.counted_bytes
        member.counted_bytes = size

    def forget(self, member: "Member") -> None:
        """A member is gone."""
        self.total_bytes -= member.counted_bytes
        member.counted_bytes = 0


class Member:
    """One member. Changed by its `Group` only."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "counted_bytes",
        "instance_id",
        "is_new",
        "join_answer",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session",
        "session_timeout_ms",
        "sync_answer",
    )

    def __init__(self, member_id: str, joining: Joining) -> None:
        """A member that joins for the first time, or as it is remembered from before a restart."""
        self.member_id = member_id
        self.instance_id = joining.instance_id
        self.client_id = joining.client_id
        self.client_host = joining.client_host
        self.session = Deadline()
        self.is_new = False
        """It waits for its first answer, and so cannot send heartbeats."""
        self.assignment = b""
        self.counted_bytes = 0
        """Of its size, what its group's `Footprint` knows."""
        self.join_answer: Deferred[JoinResult] | None = None
        self.sync_answer: Deferred[SyncResult] | None = None
        self.update(joining)

    def update(self, joining: Joining) -> None:
        """Takes over the facts of a new join."""
        self.protocols = joining.protocols
        self.session_timeout_ms = joining.session_timeout_ms
        self.rebalance_timeout_ms = joining.rebalance_timeout_ms

    @property
    def is_static(self) -> bool:
        """True when its place in the group outlives it (KIP-345)."""
        return self.instance_id is not None

    @property
    def size_bytes(self) -> int:
        """About what it takes: what came from the client."""
        return len(self.assignment) + sum(
            len(each.name) + len(each.metadata) for each in self.protocols
        )

    def metadata_of(self, protocol: str | None) -> bytes:
        """Its metadata for a protocol; nothing when it does not know that."""
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The candidate that it likes best."""
        return next(each.name for each in self.protocols if each.name in candidates)

    def answer_join(self, result: JoinResult) -> bool:
        """Answers its join; False when it does not wait for one."""
        waiting, self.join_answer = self.join_answer, None
        if waiting is None:
            return False
        waiting.resolve(result)
        return True

    def answer_sync(self, result: SyncResult) -> bool:
        """Answers its sync; False when it does not wait for one."""
        waiting, self.sync_answer = self.sync_answer, None
        if waiting is None:
            return False
        waiting.resolve(result)
        return True

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return f"Member({self.member_id!r}, instance={self.instance_id!r})"
