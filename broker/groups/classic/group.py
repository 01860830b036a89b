"""A group of the classic protocol: its state, its members, its generation, what it has committed.

Pure: it knows no clock, no log and no loop, and starts nothing. `rebalance.py` moves it from state
to state, `commits.py` judges commits. Names and rules are those of Kafka's `ClassicGroup`.
"""

from collections import Counter
from collections.abc import Container, Iterable, Sized
from enum import Enum
from typing import Protocol

from broker.groups.classic.members import Footprint, Joining, Member, MemberClaim, MemberView
from broker.groups.classic.subscription import CONSUMER, union_of
from broker.groups.group_type import GroupType
from broker.groups.owed_rows import OwedRows
from broker.groups.records.classic import GroupMetadataValue, MemberMetadata, OffsetCommitValue
from broker.groups.tally import NameTally
from broker.runtime.deadlines import Deadline
from broker.state.state_topic import Row
from protocol.errors import ErrorCode, KafkaError

Place = tuple[str, int]
"""A topic and a partition's number."""


class GroupState(Enum):
    """States of a group; the values are the wire's."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ModernGroup(Protocol):
    """The part of a group that follows a later protocol; its room knows the rest."""

    group_id: str
    owed: OwedRows
    """The group's own."""
    rows: list[Row]
    """Changes that are not written yet."""

    @property
    def group_type(self) -> GroupType:
        """Its protocol."""

    @property
    def members(self) -> Sized:
        """Its members."""

    @property
    def state(self) -> Enum:
        """Its state; the value is the wire's."""

    @property
    def topics(self) -> Container[str]:
        """The topics that it reads."""

    def end(self) -> None:
        """Nobody is a member any more."""

    def tombstones(self) -> list[Row]:
        """Takes back all that is remembered of it."""


class Group:
    """One group. Used from the event loop only."""

    def __init__(self, group_id: str, now_ms: int, footprint: Footprint) -> None:
        """Without members; what they take is counted in `footprint`."""
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.since_ms = now_ms
        """Time when it got into its state, by the wall clock (ms)."""
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: dict[str, Deadline] = {}
        """Ids that were given out and have not joined yet."""
        self.unsynced: set[str] = set()
        """Members of this generation that have not asked for their part yet."""
        self.join_deadline = Deadline()
        """Ends the wait for members to join."""
        self.sync_deadline = Deadline()
        """Ends the wait for members to ask for their part."""
        self.began_empty = False
        """True when the present rebalance, or the last one, began without members."""
        self.was_joined = False
        """A member came while the first rebalance was delayed."""
        self.owed = OwedRows(footprint)
        """Rows that are not known to be durable, of whatever protocol it followed."""
        self.modern: ModernGroup | None = None
        """The group's modern form when the broker assigns; it has no classic members then."""
        self.offsets: dict[Place, OffsetCommitValue] = {}
        self.offset_bytes = 0
        """About what `offsets` take in memory."""
        self.writes: dict[int, dict[Place, OffsetCommitValue]] = {}
        """Commits that are on their way to the disk."""
        self.going: dict[Place, int] = {}
        """Offsets that were taken back, by the write that says so; until it is durable."""
        self._write_number = 0
        self._footprint = footprint
        self._known = NameTally()
        self._topics: frozenset[str] | None = frozenset()

    # --- members ---

    def add(self, member: Member, protocol_type: str) -> None:
        """A new member; the first one settles the protocol type and leads."""
        assert member.member_id not in self.members, member
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self._known.add(each.name for each in member.protocols)
        self._footprint.count(member)
        if self.leader is None:
            self.leader = member.member_id
        forgotten = self.pending.pop(member.member_id, None)
        if forgotten is not None:
            forgotten.cancel()

    def update(self, member: Member, joining: Joining) -> None:
        """Takes over the new protocols of a member."""
        self._known.remove(each.name for each in member.protocols)
        member.update(joining)
        self._known.add(each.name for each in member.protocols)
        self._footprint.count(member)

    def give(self, member: Member, assignment: bytes) -> None:
        """Assigns partitions to a member."""
        member.assignment = assignment
        self._footprint.count(member)

    def remove(self, member: Member) -> None:
        """A member goes; another one leads if it did."""
        del self.members[member.member_id]
        member.session.cancel()
        self._footprint.forget(member)
        self.unsynced.discard(member.member_id)
        self._known.remove(each.name for each in member.protocols)
        if member.instance_id is not None:
            del self.instances[member.instance_id]
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), None)

    def replace(self, member: Member, member_id: str) -> None:
        """A static member comes back under another id; it keeps its place."""
        old = member.member_id
        assert member.instance_id is not None
        self.members = {
            member_id if name == old else name: each for name, each in self.members.items()
        }
        member.member_id = member_id
        self.instances[member.instance_id] = member_id
        if old in self.unsynced:
            self.unsynced.remove(old)
            self.unsynced.add(member_id)
        if self.leader == old:
            self.leader = member_id

    def forget_pending(self, member_id: str) -> None:
        """An id that was given out is not waited for any more."""
        self.pending.pop(member_id).cancel()

    def member(self, member_id: str, instance_id: str | None) -> Member:
        """The member, or UNKNOWN_MEMBER_ID (25), or FENCED_INSTANCE_ID (82)."""
        if instance_id is not None:
            known = self.instances.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return found

    def claimed_member(self, claim: MemberClaim) -> Member:
        """As `member`, or ILLEGAL_GENERATION (22)."""
        found = self.member(claim.member_id, claim.instance_id)
        if claim.generation != self.generation:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION)
        return found

    def takes(self, member_id: str, max_members: int) -> bool:
        """True when there is room for a member that joins."""
        if self.state in {GroupState.EMPTY, GroupState.DEAD}:
            return True
        known = self.members.get(member_id)
        if self.state is GroupState.PREPARING:
            is_waiting = known is not None and known.join_answer is not None
            return is_waiting or self.waiting_count < max_members
        return known is not None or len(self.members) < max_members

    def can_share(self, joining: Joining) -> bool:
        """True when the member's protocols fit those of the others, each named once."""
        if not joining.protocol_type or not joining.protocols:
            return False
        if joining.names_one_twice:
            return False
        if self.state is GroupState.EMPTY or not self.members:
            return True
        count = len(self.members)
        return self.protocol_type == joining.protocol_type and any(
            self._known[each.name] == count for each in joining.protocols
        )

    @property
    def waiting_count(self) -> int:
        """Number of members that have joined the present rebalance."""
        return sum(member.join_answer is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        """True when no member is waited for any more."""
        return not self.pending and all(
            member.join_answer is not None for member in self.members.values()
        )

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest time that a member may take to join, in ms."""
        return max((each.rebalance_timeout_ms for each in self.members.values()), default=0)

    @property
    def group_type(self) -> GroupType:
        """Its type."""
        return GroupType.CLASSIC if self.modern is None else self.modern.group_type

    @property
    def wire_protocol_type(self) -> str:
        """Its protocol type as on the wire: `consumer`, `share`, or a name of classic members."""
        return self.protocol_type or "" if self.modern is None else self.group_type

    def check_is_of_consumers(self) -> None:
        """GROUP_ID_NOT_FOUND (69) for a share group, whose members commit no offsets."""
        if self.group_type is GroupType.SHARE:
            text = f"Group {self.group_id} is not a consumer group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)

    @property
    def is_simple(self) -> bool:
        """True when it has never had a member: it is but a name for offsets."""
        return self.protocol_type is None

    @property
    def is_empty(self) -> bool:
        """True when it has no members, of whatever protocol."""
        if self.modern is not None:
            return not self.modern.members
        return self.state is GroupState.EMPTY

    @property
    def member_count(self) -> int:
        """Number of members, of whatever protocol."""
        return len(self.members if self.modern is None else self.modern.members)

    @property
    def state_name(self) -> str:
        """Its state as on the wire."""
        state: Enum = self.state if self.modern is None else self.modern.state
        return str(state.value)

    def become(self, modern: ModernGroup) -> None:
        """It follows a later protocol from now on; what is owed of it stays owed."""
        modern.owed = self.owed
        self.modern = modern

    def end(self, now_ms: int) -> None:
        """It is no more, here; its members are not counted any longer."""
        self.turn(GroupState.DEAD, now_ms)
        self._stop()
        self.owed.close()
        if self.modern is not None:
            self.modern.end()

    def dissolve(self, now_ms: int) -> list[Member]:
        """It is no classic group any more: without members or a generation. Those that it had."""
        self._stop()
        members = list(self.members.values())
        self.members, self.instances = {}, {}
        self._known.clear()
        self.unsynced.clear()
        self.generation = 0
        self.protocol_type = self.protocol_name = self.leader = None
        self.turn(GroupState.EMPTY, now_ms)
        return members

    def _stop(self) -> None:
        self.join_deadline.cancel()
        self.sync_deadline.cancel()
        for member_id in list(self.pending):
            self.forget_pending(member_id)
        for member in self.members.values():
            member.session.cancel()
            self._footprint.forget(member)

    # --- states ---

    def turn(self, state: GroupState, now_ms: int) -> None:
        """It is in another state from now on."""
        self.state = state
        self.since_ms = now_ms

    def elect(self) -> bool:
        """Elects a leader if need be; False when no member has joined."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.join_answer is not None:
            return True
        joined = (each for each in self.members.values() if each.join_answer is not None)
        found = next(joined, None)
        if found is None:
            return False
        self.leader = found.member_id
        return True

    def select_protocol(self) -> str:
        """The protocol with most votes among those that all members know."""
        count = len(self.members)
        candidates = self._known.said_by(count)
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def next_generation(self, now_ms: int) -> None:
        """Everybody who is to be in it has joined; without members it is Empty."""
        self.generation += 1
        self.unsynced.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.turn(GroupState.COMPLETING, now_ms)
        else:
            self.protocol_name = self.leader = None
            self.turn(GroupState.EMPTY, now_ms)
        self.read_topics()

    def read_topics(self) -> None:
        """Finds out which topics the members of this generation read."""
        self._topics = None
        if self.protocol_type == CONSUMER:
            name = self.protocol_name
            self._topics = union_of(each.metadata_of(name) for each in self.members.values())

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics that its members read; None when nobody can tell."""
        return self._topics

    def reads(self, topic: str) -> bool:
        """True when a member reads this topic, or may."""
        if self.modern is not None:
            return topic in self.modern.topics
        if self._topics is None:
            return self.protocol_type == CONSUMER
        return topic in self._topics

    def views(self) -> list[MemberView]:
        """The members as the leader receives them."""
        return [
            MemberView(each.member_id, each.instance_id, each.metadata_of(self.protocol_name))
            for each in self.members.values()
        ]

    # --- offsets ---

    def begin_write(self, offsets: dict[Place, OffsetCommitValue]) -> int:
        """A commit is on its way; the number takes it out of `writes` again."""
        self._write_number += 1
        self.writes[self._write_number] = offsets
        return self._write_number

    def begin_deletion(self, places: Iterable[Place]) -> int:
        """Offsets go; the number is that of the write that says so."""
        self._write_number += 1
        self.going.update(dict.fromkeys(places, self._write_number))
        return self._write_number

    def is_writing(self, place: Place) -> bool:
        """True while a commit for this partition is on its way to the disk."""
        return any(place in write for write in self.writes.values())

    # --- what is remembered over a restart ---

    def remembered(self, assignments: dict[str, bytes] | None = None) -> GroupMetadataValue:
        """Its generation as it is written; `assignments` by member in place of the present."""
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol_name,
            leader=self.leader,
            current_state_timestamp=self.since_ms,
            members=[
                MemberMetadata(
                    member_id=each.member_id,
                    group_instance_id=each.instance_id,
                    client_id=each.client_id,
                    client_host=each.client_host,
                    rebalance_timeout=each.rebalance_timeout_ms,
                    session_timeout=each.session_timeout_ms,
                    subscription=each.metadata_of(self.protocol_name),
                    assignment=each.assignment
                    if assignments is None
                    else assignments.get(each.member_id, b""),
                )
                for each in self.members.values()
            ],
        )

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return (
            f"Group({self.group_id!r}, {self.state.value}, generation={self.generation}, "
            f"members={len(self.members)})"
        )
