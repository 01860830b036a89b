"""A streams group (KIP-1071): its members, its topology, its epochs, who runs which tasks.

Pure: it knows no clock, no log and no loop. Every change of what is remembered leaves a row in
`rows`, in the order in which a Kafka wants to read them back; `groups.py` writes them.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from broker.groups.classic.members import Footprint
from broker.groups.group_type import GroupType
from broker.groups.owed_rows import OwedRows
from broker.groups.records.assigned import framed_value
from broker.groups.records.consumer import TargetEpochValue
from broker.groups.records.streams import (
    StoredSetting,
    StreamsGroupValue,
    StreamsKind,
    streams_key,
)
from broker.groups.streams.assignor import Runner, sticky
from broker.groups.streams.configuring import ConfiguredTopology
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.owners import TaskOwners
from broker.groups.streams.reconciliation import TaskGoal, reconciled
from broker.groups.streams.tasks import NO_TASKS, TaskSet, stored_target
from broker.groups.streams.topology import Topology
from broker.groups.subscriptions import FIRST_EPOCH
from broker.runtime.deadlines import Deadline
from broker.state.state_topic import Row
from broker.topics.metadata_image import MetadataImage
from protocol.errors import ErrorCode, KafkaError

STANDBY_REPLICAS = "num.standby.replicas"


class StreamsState(Enum):
    """States of a group; the values are the wire's."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class StreamsTimers(NamedTuple):
    """Deadlines of a member: its session, and the wait for it to give tasks back."""

    session: Deadline
    rebalance: Deadline


class StreamsGroup:
    """One group. Used from the event loop only."""

    group_type = GroupType.STREAMS

    def __init__(self, group_id: str, footprint: Footprint) -> None:
        """Without members; what they take is counted in `footprint`."""
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.target_epoch = FIRST_EPOCH
        self.assigned_ms = 0
        """Wall time of the target assignment in force, in ms."""
        self.metadata_hash = 0
        self.validated_epoch = 0
        """Epoch of the topology whose topics were found to be as it needs them; -1: none."""
        self.assignor_settings: Mapping[str, str] = {}
        self.members: dict[str, StreamsMember] = {}
        self.timers: dict[str, StreamsTimers] = {}
        self.first_assignment = Deadline()
        """Ends the wait for more members after the first one."""
        self.targets: dict[str, TaskSet] = {}
        self.topology: Topology | None = None
        self.configured: ConfiguredTopology | None = None
        self.owners = TaskOwners()
        self.shut_down_by: str | None = None
        """The member that wants all to stop."""
        self.endpoint_epoch = 0
        self.seen_image: MetadataImage | None = None
        """The topics that the hash was made of."""
        self.rows: list[Row] = []
        """Changes that are not written yet."""
        self.owed = OwedRows(footprint)
        """Rows that are not known to be durable."""
        self.is_over = False
        """True once the group was deleted: nothing is written for it any more."""
        self._footprint = footprint

    # --- members ---

    def member(self, member_id: str) -> StreamsMember:
        """A member, or UNKNOWN_MEMBER_ID (25)."""
        found = self.members.get(member_id)
        if found is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return found

    def put_said(self, member: StreamsMember) -> bool:
        """A member with its statements of now, new or not; whether they changed."""
        if self.members.get(member.member_id) == member:
            return False
        self.restore(member)
        self._row(StreamsKind.MEMBER, member.member_id, member.said_value())
        return True

    def restore(self, member: StreamsMember) -> None:
        """A member as it is remembered."""
        self._uncount(self.members.get(member.member_id))
        self.members[member.member_id] = member
        self.owners.add(member.held, member.process_id)
        self.owners.add(member.revoking, member.process_id)
        self._footprint.total_bytes += member.size_bytes

    def _uncount(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        self.owners.remove(member.held, member.process_id)
        self.owners.remove(member.revoking, member.process_id)
        self._footprint.total_bytes -= member.size_bytes

    def remove(self, member: StreamsMember) -> None:
        """A member goes."""
        del self.members[member.member_id]
        self._uncount(member)
        self.targets.pop(member.member_id, None)
        for deadline in self.timers.pop(member.member_id, ()):
            deadline.cancel()
        for kind in (StreamsKind.CURRENT, StreamsKind.TARGET, StreamsKind.MEMBER):
            self.rows.append((streams_key(kind, self.group_id, member.member_id), None))
        if not self.members:
            self.shut_down_by = None

    # --- the topology ---

    def set_topology(self, topology: Topology) -> None:
        """Describes the application."""
        self.restore_topology(topology)
        self._row(StreamsKind.TOPOLOGY, "", topology.value)

    def restore_topology(self, topology: Topology | None) -> None:
        """Sets the topology as it is remembered."""
        before = 0 if self.topology is None else self.topology.size_bytes
        self.topology = topology
        self._footprint.total_bytes += (topology.size_bytes if topology else 0) - before

    @property
    def topics(self) -> frozenset[str]:
        """The names of all topics that members read."""
        if self.topology is None or not self.members:
            return frozenset()
        return frozenset(self.topology.by_source)

    def begin_epoch(self) -> None:
        """Begins a new epoch: the assignment has to be computed again."""
        self.epoch += 1
        settings = [
            StoredSetting(key=key, value=value) for key, value in self.assignor_settings.items()
        ]
        value = StreamsGroupValue(
            epoch=self.epoch,
            metadata_hash=self.metadata_hash,
            validated_topology_epoch=self.validated_epoch,
            last_assignment_configs=settings,
        )
        self._row(StreamsKind.GROUP, "", value)

    # --- who is to run what ---

    def assign(self, now_ms: int) -> None:
        """Decides who is to run what in this epoch."""
        for name, target in self._assigned().items():
            if target != self.targets.get(name):
                self.targets[name] = target
                self._row(StreamsKind.TARGET, name, stored_target(target))
        self.target_epoch, self.assigned_ms = self.epoch, now_ms
        value = TargetEpochValue(epoch=self.epoch, timestamp=now_ms)
        self._row(StreamsKind.TARGET_EPOCH, "", value)

    def _assigned(self) -> dict[str, TaskSet]:
        configured = self.configured
        if configured is None or not configured.is_ready or configured.subtopologies is None:
            return dict.fromkeys(self.members, NO_TASKS)
        runners = {
            name: Runner(each.process_id, self.targets.get(name, NO_TASKS))
            for name, each in self.members.items()
        }
        replicas = int(self.assignor_settings.get(STANDBY_REPLICAS, "0"))
        return sticky(runners, configured.subtopologies, replicas)

    def reconcile(
        self, member: StreamsMember, target: TaskSet, owned: TaskSet | None
    ) -> StreamsMember:
        """One step of a member towards its target, which is of the group's target epoch."""
        after = reconciled(member, TaskGoal(self.target_epoch, target, self.owners), owned)
        if after != member:
            self.restore(after)
            self._row(StreamsKind.CURRENT, after.member_id, after.current_value())
        return after

    @property
    def state(self) -> StreamsState:
        """The group's state. From any thread."""
        members = list(self.members.values())
        if not members:
            return StreamsState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_epoch:
            return StreamsState.NOT_READY
        if self.epoch > self.target_epoch:
            return StreamsState.ASSIGNING
        if all(each.is_reconciled_to(self.target_epoch) for each in members):
            return StreamsState.STABLE
        return StreamsState.RECONCILING

    # --- what is remembered ---

    def end(self) -> None:
        """It is no more: its timers stop, its members are not counted any longer."""
        self.is_over = True
        self.first_assignment.cancel()
        for timers in self.timers.values():
            for deadline in timers:
                deadline.cancel()
        self.timers.clear()
        self.restore_topology(None)
        self._footprint.total_bytes -= sum(each.size_bytes for each in self.members.values())

    def tombstones(self) -> list[Row]:
        """Takes back all that is remembered of it."""
        of_group = (StreamsKind.GROUP, StreamsKind.TOPOLOGY)
        gone = [
            streams_key(kind, self.group_id, name)
            for kind in (StreamsKind.CURRENT, StreamsKind.TARGET)
            for name in self.members
        ]
        gone.append(streams_key(StreamsKind.TARGET_EPOCH, self.group_id))
        gone += [streams_key(StreamsKind.MEMBER, self.group_id, name) for name in self.members]
        gone += [streams_key(kind, self.group_id) for kind in of_group]
        return [(key, None) for key in gone]

    def _row(self, kind: StreamsKind, member: str, value: object) -> None:
        self.rows.append((streams_key(kind, self.group_id, member), framed_value(value)))

    def __repr__(self) -> str:
        """For log events and failing tests."""
        return (
            f"StreamsGroup({self.group_id!r}, {self.state.value}, epoch={self.epoch}, "
            f"target_epoch={self.target_epoch}, members={len(self.members)})"
        )
