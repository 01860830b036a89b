"""A consumer group (KIP-848): its members, its epochs, who is to read what, and who reads it still.

Pure: it knows no clock, no log and no loop. Every change of what is remembered leaves a row in
`rows`, in the order in which a Kafka wants to read them back; `groups.py` writes them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from broker.groups.classic.members import Footprint
from broker.groups.consumer.assignors import ASSIGNORS
from broker.groups.consumer.member import Assigned, ConsumerMember, MemberState
from broker.groups.consumer.reconciliation import Goal, Owned, reconciled
from broker.groups.group_type import GroupType
from broker.groups.owed_rows import OwedRows
from broker.groups.records.consumer import (
    GroupValue,
    RecordKind,
    RegexValue,
    TargetEpochValue,
    TargetPartitions,
    TargetValue,
    key_of,
    value_of,
)
from broker.groups.subscriptions import FIRST_EPOCH, Target, hash_of
from broker.groups.tally import NameTally
from broker.runtime.deadlines import Deadline
from broker.state.state_topic import Row
from broker.topics.metadata_image import MetadataImage
from protocol.errors import ErrorCode, KafkaError


class ConsumerState(Enum):
    """States of a group; the values are the wire's."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Timers(NamedTuple):
    """Deadlines of a member: its session, its rebalance."""

    session: Deadline
    rebalance: Deadline
    """Ends the wait for it to give partitions back; of a classic member, to join or to sync."""


class ConsumerGroup:
    """One group. Used from the event loop only."""

    group_type = GroupType.CONSUMER

    def __init__(self, group_id: str, footprint: Footprint) -> None:
        """Without members; what they take is counted in `footprint`."""
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.target_epoch = 0
        self.metadata_hash = 0
        self.members: dict[str, ConsumerMember] = {}
        self.timers: dict[str, Timers] = {}
        self.instances: dict[str, str] = {}
        """Member ids by instance id."""
        self.targets: dict[str, Target] = {}
        self.owners: dict[tuple[UUID, int], str] = {}
        """The member that has a partition, or has yet to give it back."""
        self.expressions: dict[str, RegexValue] = {}
        """Matches of each regular expression as of the last look-up."""
        self.refused: dict[str, str] = {}
        """Expressions that could not be looked up, and why."""
        self.seen_image: MetadataImage | None = None
        """The topics that the hash was made of."""
        self.matched_image: MetadataImage | None = None
        """The topics that the expressions were last looked up among."""
        self.is_matching = False
        """True while they are being looked up."""
        self.rows: list[Row] = []
        """Changes that are not written yet."""
        self.owed = OwedRows(footprint)
        """Rows that are not known to be durable."""
        self._footprint = footprint
        self._names = NameTally()
        self._patterns = NameTally()

    # --- members ---

    def member(self, member_id: str) -> ConsumerMember:
        """A member, or UNKNOWN_MEMBER_ID (25)."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        """The member that has this instance id."""
        return self.members.get(self.instances.get(instance_id or "", ""))

    def put(self, member: ConsumerMember) -> None:
        """A member as it is from now on, new or not."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._uncount(old)
        self._count(member)
        if old is None or old.says() != member.says():
            self._row(RecordKind.MEMBER, member.member_id, member.said_value())
        if old is not None and old.has() != member.has():
            self._row(RecordKind.CURRENT, member.member_id, member.current_value())

    def restore(self, member: ConsumerMember) -> None:
        """A member as it is remembered; what another one has is not its own."""
        self._count(
            replace(
                member, assigned=self._free(member.assigned), revoking=self._free(member.revoking)
            )
        )

    def _free(self, assigned: Assigned) -> Assigned:
        return {
            topic: {
                index: epoch for index, epoch in each.items() if (topic, index) not in self.owners
            }
            for topic, each in assigned.items()
        }

    def remove(self, member: ConsumerMember) -> None:
        """A member goes, and what it had is free."""
        del self.members[member.member_id]
        self._uncount(member)
        if member.instance_id is not None and (
            self.instances.get(member.instance_id) == member.member_id
        ):
            del self.instances[member.instance_id]
        self.targets.pop(member.member_id, None)
        for deadline in self.timers.pop(member.member_id, ()):
            deadline.cancel()
        for kind in (RecordKind.CURRENT, RecordKind.TARGET, RecordKind.MEMBER):
            self.rows.append((key_of(kind, self.group_id, member.member_id), None))
        if member.regex and not self._patterns[member.regex]:
            self.forget_expression(member.regex)

    def replace(self, old: ConsumerMember, new: ConsumerMember) -> None:
        """Replaces a static member that begins again under another id; its target stays."""
        target = self.targets.get(old.member_id, {})
        expression = self.expressions.get(old.regex)
        self.remove(old)
        if expression is not None:
            self.expressions[old.regex] = expression
            self._row(RecordKind.REGEX, old.regex, expression)
        self._count(new)
        self._row(RecordKind.MEMBER, new.member_id, new.said_value())
        self.set_target(new.member_id, target)
        self._row(RecordKind.CURRENT, new.member_id, new.current_value())

    def _count(self, member: ConsumerMember) -> None:
        places = _places(member)
        for place in places:
            assert place not in self.owners, (place, member)
        assert len(places) == len(set(places)), member
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
        self._names.add(member.names)
        if member.regex:
            self._patterns.add([member.regex])
        self.owners.update(dict.fromkeys(places, member.member_id))
        self._footprint.total_bytes += member.size_bytes

    def _uncount(self, member: ConsumerMember) -> None:
        self._names.remove(member.names)
        if member.regex:
            self._patterns.remove([member.regex])
        for place in _places(member):
            del self.owners[place]
        self._footprint.total_bytes -= member.size_bytes

    # --- what is read ---

    @property
    def patterns(self) -> frozenset[str]:
        """The regular expressions that members subscribe by."""
        return self._patterns.names

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that members subscribe to."""
        return frozenset(
            self._names.names.union(*(each.topics for each in self.expressions.values()))
        )

    def subscribed(self, member: ConsumerMember, image: MetadataImage) -> frozenset[UUID]:
        """The topics that a member reads, as far as they exist."""
        names = member.names
        if member.regex in self.expressions:
            names = names | frozenset(self.expressions[member.regex].topics)
        return frozenset(image.topics[name].topic_id for name in names if name in image.topics)

    def set_expression(self, text: str, value: RegexValue) -> bool:
        """Sets the matches of an expression; True when they changed."""
        before = self.expressions.get(text)
        self.expressions[text] = value
        self._row(RecordKind.REGEX, text, value)
        return before is None or set(before.topics) != set(value.topics)

    def forget_expression(self, text: str) -> None:
        """Nobody subscribes by it any more."""
        self.refused.pop(text, None)
        if self.expressions.pop(text, None) is not None:
            self.rows.append((key_of(RecordKind.REGEX, self.group_id, text), None))

    def sees(self, image: MetadataImage) -> bool:
        """Looks at the topics; whether those that are read changed since."""
        self.seen_image = image
        seen = hash_of(self.topics, image)
        has_changed = seen != self.metadata_hash
        self.metadata_hash = seen
        return has_changed

    def begin_epoch(self) -> None:
        """Begins a new epoch: the assignment has to be computed again."""
        self.epoch += 1
        value = GroupValue(epoch=self.epoch, metadata_hash=self.metadata_hash)
        self._row(RecordKind.GROUP, "", value)

    # --- who is to read what ---

    def assignor(self, default: str) -> str:
        """The assignor that most members ask for."""
        wanted = Counter(each.assignor for each in self.members.values() if each.assignor)
        return max(wanted, key=lambda name: wanted[name]) if wanted else default

    def assign(self, image: MetadataImage, default: str, now_ms: int) -> None:
        """Decides who is to read what in this epoch."""
        alike: dict[tuple[frozenset[str], str], frozenset[UUID]] = {}
        subscriptions = {}
        for name, member in self.members.items():
            said = member.names, member.regex
            if said not in alike:
                alike[said] = self.subscribed(member, image)
            subscriptions[name] = alike[said]
        counts = {topic_id: len(each.partitions) for topic_id, each in image.by_id.items()}
        assign = ASSIGNORS.get(self.assignor(default), ASSIGNORS[default])
        for name, target in assign(subscriptions, self.targets, counts).items():
            if target != self.targets.get(name):
                self.set_target(name, target)
        self.settle_targets(now_ms)

    def settle_targets(self, now_ms: int) -> None:
        """The targets are those of this epoch."""
        self.target_epoch = self.epoch
        self._row(RecordKind.TARGET_EPOCH, "", TargetEpochValue(epoch=self.epoch, timestamp=now_ms))

    def remember_current(self, member: ConsumerMember) -> None:
        """Writes the member's current assignment though it did not change."""
        self._row(RecordKind.CURRENT, member.member_id, member.current_value())

    def set_target(self, member_id: str, target: Target) -> None:
        """Sets the target of a member."""
        self.targets[member_id] = target
        partitions = [
            TargetPartitions(topic_id=topic, partitions=sorted(indexes))
            for topic, indexes in target.items()
        ]
        self._row(RecordKind.TARGET, member_id, TargetValue(topic_partitions=partitions))

    def reconcile(
        self, member: ConsumerMember, image: MetadataImage, owned: Owned | None, *, changed: bool
    ) -> ConsumerMember:
        """One step of a member towards its target. `changed`: it subscribes to something else."""
        if not changed and member.is_reconciled_to(self.target_epoch):
            return member
        goal = Goal(
            self.target_epoch,
            self.targets.get(member.member_id, {}),
            self.subscribed(member, image),
            lambda topic, index: self.owners.get((topic, index)) not in {None, member.member_id},
        )
        after = reconciled(member, goal, owned, subscription_changed=changed)
        if after is not member:
            self.put(after)
        return after

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """True while a partition of its target is still another member's."""
        if member.state is not MemberState.UNRELEASED:
            return False
        return any(
            self.owners.get((topic, index)) not in {None, member.member_id}
            for topic, indexes in self.targets.get(member.member_id, {}).items()
            for index in indexes
        )

    @property
    def state(self) -> ConsumerState:
        """The group's state. From any thread."""
        members = list(self.members.values())
        if not members:
            return ConsumerState.EMPTY
        if self.epoch > self.target_epoch:
            return ConsumerState.ASSIGNING
        if all(each.is_reconciled_to(self.target_epoch) for each in members):
            return ConsumerState.STABLE
        return ConsumerState.RECONCILING

    # --- what is remembered ---

    def end(self) -> None:
        """It is no more: its timers stop, its members are not counted any longer."""
        for timers in self.timers.values():
            for deadline in timers:
                deadline.cancel()
        self._footprint.total_bytes -= sum(each.size_bytes for each in self.members.values())
        self.timers.clear()

    def tombstones(self) -> list[Row]:
        """Takes back all that is remembered of it."""
        gone = [
            key_of(kind, self.group_id, name)
            for kind in (RecordKind.CURRENT, RecordKind.TARGET)
            for name in self.members
        ]
        gone.append(key_of(RecordKind.TARGET_EPOCH, self.group_id))
        gone += [key_of(RecordKind.MEMBER, self.group_id, name) for name in self.members]
        gone += [key_of(RecordKind.REGEX, self.group_id, text) for text in self.expressions]
        gone.append(key_of(RecordKind.GROUP, self.group_id))
        return [(key, None) for key in gone]

    def _row(self, kind: RecordKind, part: str, value: object) -> None:
        self.rows.append((key_of(kind, self.group_id, part), value_of(value)))

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return (
            f"ConsumerGroup({self.group_id!r}, {self.state.value}, epoch={self.epoch}, "
            f"target_epoch={self.target_epoch}, members={len(self.members)})"
        )


def _places(member: ConsumerMember) -> list[tuple[UUID, int]]:
    parts: tuple[Mapping[UUID, Mapping[int, int]], ...] = member.assigned, member.revoking
    return [(topic, index) for part in parts for topic, each in part.items() for index in each]
