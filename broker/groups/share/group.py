"""A share group (KIP-932): its members, its epochs, which partitions each member reads.

Pure: it knows no clock, no log and no loop. Every change of what is remembered leaves a row in
`rows`, in Kafka's order; `groups.py` writes them.
"""

from dataclasses import replace
from enum import Enum
from uuid import UUID

from broker.groups.classic.members import Footprint
from broker.groups.group_type import GroupType
from broker.groups.owed_rows import OwedRows
from broker.groups.records.assigned import framed_value
from broker.groups.records.consumer import TargetEpochValue, TargetValue
from broker.groups.records.share import ShareGroupValue, ShareKind, share_key
from broker.groups.share.assignor import ASSIGNORS, Partitions
from broker.groups.share.member import ShareMember, stored_target
from broker.groups.share.states import PartitionStates
from broker.groups.subscriptions import FIRST_EPOCH, Target, hash_of
from broker.groups.tally import NameTally
from broker.runtime.deadlines import Deadline
from broker.state.state_topic import Row
from broker.topics.metadata_image import MetadataImage
from protocol.errors import ErrorCode, KafkaError


class ShareState(Enum):
    """States of a group; the values are the wire's."""

    EMPTY = "Empty"
    STABLE = "Stable"


class ShareGroup:
    """One group. Used from the event loop only."""

    group_type = GroupType.SHARE

    def __init__(self, group_id: str, footprint: Footprint) -> None:
        """Without members; what they take is counted in `footprint`."""
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.target_epoch = 0
        self.assigned_ms = 0
        """Wall time of the target assignment in force, in ms."""
        self.metadata_hash = 0
        self.members: dict[str, ShareMember] = {}
        self.sessions: dict[str, Deadline] = {}
        self.targets: dict[str, Target] = {}
        self.states = PartitionStates()
        self.seen_image: MetadataImage | None = None
        """The topics that the hash was made of."""
        self.rows: list[Row] = []
        """Changes that are not written yet."""
        self.owed = OwedRows(footprint)
        """Rows that are not known to be durable."""
        self._footprint = footprint
        self._names = NameTally()

        self.is_over = False
        """True once the group was deleted: nothing is written for it any more."""

    # --- members ---

    def member(self, member_id: str) -> ShareMember:
        """A member, or UNKNOWN_MEMBER_ID (25)."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def put(self, member: ShareMember) -> None:
        """A member as it is from now on, new or not."""
        old = self.members.get(member.member_id)
        self.restore(member)
        if old is None or old.says() != member.says():
            self._row(ShareKind.MEMBER, member.member_id, member.said_value())
        if old is not None and old.has() != member.has():
            self._row(ShareKind.CURRENT, member.member_id, member.current_value())

    def restore(self, member: ShareMember) -> None:
        """A member as it is remembered."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._uncount(old)
        self.members[member.member_id] = member
        self._names.add(member.names)
        self._footprint.total_bytes += member.size_bytes

    def remove(self, member: ShareMember) -> None:
        """A member goes."""
        del self.members[member.member_id]
        self._uncount(member)
        self.targets.pop(member.member_id, None)
        session = self.sessions.pop(member.member_id, None)
        if session is not None:
            session.cancel()
        for kind in (ShareKind.CURRENT, ShareKind.TARGET, ShareKind.MEMBER):
            self.rows.append((share_key(kind, self.group_id, member.member_id), None))

    def _uncount(self, member: ShareMember) -> None:
        self._names.remove(member.names)
        self._footprint.total_bytes -= member.size_bytes

    # --- topics, and the states of their partitions ---

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that members subscribe to."""
        return self._names.names

    def sees(self, image: MetadataImage) -> bool:
        """Looks at the topics; whether those that are read changed since."""
        self.seen_image = image
        before, self.metadata_hash = self.metadata_hash, hash_of(self.topics, image)
        return self.metadata_hash != before

    @property
    def is_assignment_pending(self) -> bool:
        """True when partitions of which a state is made are not what members are to read."""
        if not self.members or self.target_epoch < self.epoch:
            return False
        topics = self.topics
        targets = self.targets.values()
        return any(
            self.states.names[topic] in topics
            and indexes != frozenset[int]().union(*(each.get(topic, ()) for each in targets))
            for topic, indexes in self.states.made.items()
        )

    def set_states(self, states: PartitionStates) -> None:
        """Sets the states of partitions."""
        if states == self.states:
            return
        self.states = states
        self._row(ShareKind.STATES, "", states.value())

    def begin_epoch(self) -> None:
        """Begins a new epoch: the assignment has to be computed again."""
        self.epoch += 1
        value = ShareGroupValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
        self._row(ShareKind.GROUP, "", value)

    # --- who is to read what ---

    def assign(self, image: MetadataImage, assignor: str, now_ms: int) -> None:
        """Decides who is to read what in this epoch: partitions whose state is made."""
        subscriptions = {name: _ids(member.names, image) for name, member in self.members.items()}
        partitions: Partitions = {
            topic: sorted(indexes)
            for topic, indexes in self.states.made.items()
            if topic in image.by_id
        }
        assigned = ASSIGNORS[assignor](subscriptions, self.targets, partitions)
        for name, target in assigned.items():
            if target != self.targets.get(name):
                self.targets[name] = target
                value = TargetValue(topic_partitions=stored_target(target))
                self._row(ShareKind.TARGET, name, value)
        self.target_epoch, self.assigned_ms = self.epoch, now_ms
        value_of_epoch = TargetEpochValue(epoch=self.epoch, timestamp=now_ms)
        self._row(ShareKind.TARGET_EPOCH, "", value_of_epoch)

    def reconcile(self, member: ShareMember, image: MetadataImage) -> ShareMember:
        """The member with its target; of topics that it no longer names it reads none meanwhile."""
        read = _ids(member.names, image)
        target = self.targets.get(member.member_id, {})
        assigned = {topic: each for topic, each in target.items() if topic in read and each}
        if member.epoch == self.target_epoch and member.assigned == assigned:
            return member
        after = replace(member, assigned=assigned)
        if member.epoch != self.target_epoch:
            after = member.moved(self.target_epoch, assigned)
        self.put(after)
        return after

    @property
    def state(self) -> ShareState:
        """The group's state. From any thread."""
        return ShareState.STABLE if self.members else ShareState.EMPTY

    # --- what is remembered ---

    def end(self) -> None:
        """It is no more: its timers stop, its members are not counted any longer."""
        self.is_over = True
        for session in self.sessions.values():
            session.cancel()
        self._footprint.total_bytes -= sum(each.size_bytes for each in self.members.values())
        self.sessions.clear()

    def tombstones(self) -> list[Row]:
        """Takes back all that is remembered of it."""
        of_members = (ShareKind.CURRENT, ShareKind.TARGET, ShareKind.MEMBER)
        of_group = (ShareKind.TARGET_EPOCH, ShareKind.STATES, ShareKind.GROUP)
        gone = [
            share_key(kind, self.group_id, name) for kind in of_members for name in self.members
        ]
        gone += [share_key(kind, self.group_id) for kind in of_group]
        return [(key, None) for key in gone]

    def _row(self, kind: ShareKind, member: str, value: object) -> None:
        self.rows.append((share_key(kind, self.group_id, member), framed_value(value)))

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return (
            f"ShareGroup({self.group_id!r}, {self.state.value}, epoch={self.epoch}, "
            f"target_epoch={self.target_epoch}, members={len(self.members)})"
        )


def _ids(names: frozenset[str], image: MetadataImage) -> frozenset[UUID]:
    return frozenset(image.topics[name].topic_id for name in names if name in image.topics)
