"""Streams groups at work (KIP-1071): heartbeats move them, time moves them, topics move them.

A change is made in memory at once and is answered when it is durable. Rules, and their order:
Kafka 4.3's `GroupMetadataManager`. Used from the event loop only.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.classic.members import Footprint
from broker.groups.classic.rebalance import Rebalances
from broker.groups.records.classic import group_key
from broker.groups.row_writer import RowWriter
from broker.groups.streams.configuring import (
    ConfiguredTopology,
    check_size,
    configured,
)
from broker.groups.streams.endpoints import endpoints_of
from broker.groups.streams.group import STANDBY_REPLICAS, StreamsGroup, StreamsTimers
from broker.groups.streams.heartbeat import (
    GroupStatus,
    StreamsHeard,
    StreamsHeartbeat,
    check_epoch,
)
from broker.groups.streams.member import StreamsMember, StreamsMemberState
from broker.groups.streams.reconciliation import check_known
from broker.groups.streams.status import Status
from broker.groups.streams.tasks import NO_TASKS
from broker.groups.streams.topology import Topology
from broker.groups.subscriptions import hash_of
from broker.groups.surroundings import Surroundings
from broker.runtime.deadlines import Deadline, Deadlines
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.topics.metadata_image import MetadataImage
from protocol.errors import ErrorCode, KafkaError

NOT_VALIDATED = -1
StreamsOutcome = tuple[StreamsHeard, Deferred[None] | None]
"""Answer to a member, and the write that has to be durable before."""


class _Plan(NamedTuple):
    """A topology in force from now on, with the numbers of the topics that exist now."""

    topology: Topology
    is_new: bool
    configured: ConfiguredTopology
    metadata_hash: int
    image: MetadataImage


class StreamsGroups:
    """Moves streams groups."""

    def __init__(
        self,
        deadlines: Deadlines,
        rebalances: Rebalances,
        rows: RowWriter,
        around: Surroundings,
        footprint: Footprint,
    ) -> None:
        """Without groups. `rebalances` ends classic ones."""
        self._deadlines = deadlines
        self._rebalances = rebalances
        self._rows = rows
        self._around = around
        self._footprint = footprint
        self.count: int = 0
        """Epochs that began."""

    # --- groups that begin and end ---

    def streams_of(self, group: Group) -> tuple[StreamsGroup, bool]:
        """The group as a streams group, and whether it was made one now.

        GROUP_ID_NOT_FOUND (69) for a group of another kind, but for a classic one without members.
        """
        if isinstance(group.modern, StreamsGroup):
            return group.modern, False
        if group.modern is not None or not group.is_empty:
            text = f"Group {group.group_id} is not a streams group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        streams = StreamsGroup(group.group_id, self._footprint)
        streams.owed = group.owed
        if group.generation:
            streams.rows.append((group_key(group.group_id), None))
        return streams, True

    def check_room(self, streams: StreamsGroup) -> None:
        """GROUP_MAX_SIZE_REACHED (81) for a member that joins a full group, even again."""
        limit = self._around.settings().group_streams_max_size
        if len(streams.members) >= limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The streams group has reached its maximum capacity of {limit} members.",
            )

    # --- heartbeats ---

    def join(self, group: Group, beat: StreamsHeartbeat) -> StreamsOutcome:
        """A member joins, or joins again. Raises KafkaError, and changes nothing then."""
        streams, is_made = self.streams_of(group)
        self.check_room(streams)
        heard, written = self.heartbeat(streams, beat)
        if is_made:
            # As in Kafka, which makes the group of its records: what is not in them is forgotten.
            streams.configured, streams.endpoint_epoch, streams.shut_down_by = None, 0, None
            heard = heard._replace(endpoint_epoch=0)
            self._rebalances.dissolve(group)
            group.become(streams)
        return heard, written

    def heartbeat(self, streams: StreamsGroup, beat: StreamsHeartbeat) -> StreamsOutcome:
        """A member joins, or lives. Raises KafkaError, and changes nothing then."""
        known = streams.members.get(beat.member_id)
        is_new = known is None and beat.joins
        member = StreamsMember(beat.member_id) if is_new else streams.member(beat.member_id)
        check_epoch(member, beat)
        check_known(member, beat.owned)
        plan, updated = self._planned(streams, beat), _updated(member, beat)
        statuses = _staleness(streams, updated)
        was_empty = not streams.members
        self._change(streams, updated, plan)
        if was_empty:
            self._await_others(streams)
        after = self._settled(streams, updated, beat, statuses)
        self.alive(streams, after)
        if beat.shuts_down:
            streams.shut_down_by = streams.shut_down_by or beat.member_id
        heard = self._heard(streams, beat, after, statuses, is_changed=after.held != member.held)
        return heard, self._rows.store(streams)

    def _planned(self, streams: StreamsGroup, beat: StreamsHeartbeat) -> _Plan:
        """The topology with its numbers. INVALID_REQUEST (42), STREAMS_INVALID_TOPOLOGY (130)."""
        topology, is_new = _topology(streams, beat)
        image = self._around.image()
        before, metadata_hash = streams.configured, streams.metadata_hash
        if is_new or before is None or streams.seen_image is not image:
            metadata_hash = hash_of(topology.required_topics, image)
        if is_new or before is None or metadata_hash != streams.metadata_hash:
            before = configured(topology, counts_of(image))
        if before.is_ready:
            _check_tasks(before, beat)
        return _Plan(topology, is_new, before, metadata_hash, image)

    def _change(self, streams: StreamsGroup, updated: StreamsMember, plan: _Plan) -> None:
        """Notes what the member says, and begins an epoch if that, or the topics, changed."""
        bumps = streams.put_said(updated)
        if plan.is_new:
            streams.set_topology(plan.topology)
        streams.configured, streams.seen_image = plan.configured, plan.image
        group_settings = self._around.group_settings(streams.group_id)
        facts = (
            plan.metadata_hash,
            plan.topology.epoch if plan.configured.is_ready else NOT_VALIDATED,
            {STANDBY_REPLICAS: str(group_settings.streams_num_standby_replicas)},
        )
        before = (streams.metadata_hash, streams.validated_epoch, streams.assignor_settings)
        if bumps or facts != before:
            streams.metadata_hash, streams.validated_epoch, streams.assignor_settings = facts
            self._begin_epoch(streams)

    def _begin_epoch(self, streams: StreamsGroup) -> None:
        streams.begin_epoch()
        self.count += 1
        event(
            "streams_group_epoch", "debug", group=streams.group_id, epoch=streams.epoch,
            members=len(streams.members),
        )  # fmt: skip

    def _settled(
        self,
        streams: StreamsGroup,
        member: StreamsMember,
        beat: StreamsHeartbeat,
        statuses: list[GroupStatus],
    ) -> StreamsMember:
        """Decides who is to run what, if that is due, and takes the member a step towards it."""
        may_have = streams.first_assignment.at is None
        if not may_have:
            text = "Assignment delayed due to the configured initial rebalance delay."
            statuses.append(GroupStatus(Status.ASSIGNMENT_DELAYED, text))
        elif streams.epoch > streams.target_epoch:
            if self._may_assign(streams):
                streams.assign(self._around.now_ms())
            else:
                text = "Assignment delayed due to the configured assignment interval."
                statuses.append(GroupStatus(Status.ASSIGNMENT_DELAYED, text))
        if member.is_reconciled_to(streams.target_epoch):
            return member
        target = streams.targets.get(member.member_id, NO_TASKS) if may_have else NO_TASKS
        after = streams.reconcile(member, target, beat.owned)
        if after != member:
            self.expect(streams, after)
        return after

    def _may_assign(self, streams: StreamsGroup) -> bool:
        """False for a while after the last assignment; a clock that was set back holds none up."""
        if not streams.assigned_ms:
            return True
        settings = self._around.group_settings(streams.group_id)
        since_ms = self._around.now_ms() - streams.assigned_ms
        return not 0 <= since_ms < settings.streams_assignment_interval_ms

    def _heard(
        self,
        streams: StreamsGroup,
        beat: StreamsHeartbeat,
        member: StreamsMember,
        statuses: list[GroupStatus],
        *,
        is_changed: bool,
    ) -> StreamsHeard:
        wants_all = beat.joins or is_changed
        if wants_all and member.endpoint is not None:
            streams.endpoint_epoch += 1
        plan = streams.configured
        assert plan is not None
        if plan.obstacle is not None:
            statuses.append(GroupStatus(plan.obstacle.status, plan.obstacle.text))
        if streams.shut_down_by is not None:
            statuses.append(_shutdown(streams.shut_down_by))
        endpoints = None
        if streams.endpoint_epoch != beat.endpoint_epoch:
            counts = counts_of(self._around.image())
            endpoints = endpoints_of(streams.members.values(), plan.subtopologies or {}, counts)
        return StreamsHeard(
            member.member_id,
            member.epoch,
            member.held if wants_all else None,
            statuses,
            streams.endpoint_epoch,
            endpoints,
            plan.missing,
        )

    # --- members that go ---

    def leave(self, streams: StreamsGroup, beat: StreamsHeartbeat) -> StreamsOutcome:
        """A member goes. UNKNOWN_MEMBER_ID (25)."""
        if beat.shuts_down:
            streams.shut_down_by = streams.shut_down_by or beat.member_id
        self._fence(streams, streams.member(beat.member_id))
        return StreamsHeard(beat.member_id, beat.epoch), self._rows.store(streams)

    def _fence(self, streams: StreamsGroup, member: StreamsMember) -> None:
        """A member goes; its tasks fall to the others with their next heartbeats."""
        streams.remove(member)
        self._begin_epoch(streams)

    # --- time ---

    def alive(self, streams: StreamsGroup, member: StreamsMember) -> None:
        """Restarts the session of a member."""
        timers = self._timers(streams, member.member_id)
        settings = self._around.group_settings(streams.group_id)
        self._deadlines.set(timers.session, settings.streams_session_timeout_ms)

    def _timers(self, streams: StreamsGroup, member_id: str) -> StreamsTimers:
        timers = streams.timers.get(member_id)
        if timers is None:
            timers = streams.timers[member_id] = StreamsTimers(Deadline(), Deadline())
            timers.session.callback = partial(self._is_silent, streams, member_id)
        return timers

    def expect(self, streams: StreamsGroup, member: StreamsMember) -> None:
        """A member that has to give tasks back has its rebalance time-out for it."""
        deadline = self._timers(streams, member.member_id).rebalance
        if member.state is not StreamsMemberState.UNREVOKED:
            deadline.cancel()
            return
        deadline.callback = partial(self._is_late, streams, member.member_id, member.epoch)
        self._deadlines.set(deadline, member.rebalance_timeout_ms)

    def _is_silent(self, streams: StreamsGroup, member_id: str) -> None:
        member = streams.members.get(member_id)
        if member is not None and not streams.is_over:
            event("streams_member_silent", "debug", group=streams.group_id, member=member_id)
            self._fence(streams, member)
            self._rows.store_later(streams)

    def _is_late(self, streams: StreamsGroup, member_id: str, epoch: int) -> None:
        member = streams.members.get(member_id)
        if member is not None and member.epoch == epoch and not streams.is_over:
            event("streams_member_late", group=streams.group_id, member=member_id, epoch=epoch)
            self._fence(streams, member)
            self._rows.store_later(streams)

    def _await_others(self, streams: StreamsGroup) -> None:
        """The first member waits for others, so that tasks are given once."""
        settings = self._around.group_settings(streams.group_id)
        delay_ms = settings.streams_initial_rebalance_delay_ms
        if delay_ms and streams.first_assignment.at is None:
            streams.first_assignment.callback = partial(self._assign_first, streams)
            self._deadlines.set(streams.first_assignment, delay_ms)

    def _assign_first(self, streams: StreamsGroup) -> None:
        is_asked = bool(streams.members) and streams.configured is not None
        is_due = not streams.is_over and streams.epoch > streams.target_epoch
        if is_asked and is_due and self._may_assign(streams):
            streams.assign(self._around.now_ms())
            self._rows.store_later(streams)


def counts_of(image: MetadataImage) -> Callable[[str], int | None]:
    """Numbers of partitions of the topics that exist."""
    topics = image.topics
    return lambda name: len(topics[name].partitions) if name in topics else None


def _topology(streams: StreamsGroup, beat: StreamsHeartbeat) -> tuple[Topology, bool]:
    """The topology in force from now on, and whether the group has none yet."""
    known, said = streams.topology, beat.topology
    if said is None:
        if known is None:
            text = "The group has no topology: the member must rejoin with one."
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        return known, False
    if known is None:
        check_size(said)
        return said, True
    if known.epoch <= said.epoch and not known.says_as(said):
        text = "Topology updates are not supported yet."
        raise KafkaError(ErrorCode.INVALID_REQUEST, text)
    return known, False


def _staleness(streams: StreamsGroup, member: StreamsMember) -> list[GroupStatus]:
    known = streams.topology
    if known is None or member.topology_epoch >= known.epoch:
        return []
    text = (
        f"The member's topology epoch {member.topology_epoch} is behind the group's topology "
        f"epoch {known.epoch}."
    )
    return [GroupStatus(Status.STALE_TOPOLOGY, text)]


def _shutdown(member_id: str) -> GroupStatus:
    text = (
        f"Streams group member {member_id} encountered a fatal error and requested a shutdown for "
        "the entire application."
    )
    return GroupStatus(Status.SHUTDOWN_APPLICATION, text)


def _check_tasks(plan: ConfiguredTopology, beat: StreamsHeartbeat) -> None:
    """INVALID_REQUEST (42) for a task that the topology does not have."""
    owned, parts = beat.owned, plan.subtopologies or {}
    if owned is None:
        return
    for tasks in (owned.active, owned.standby, owned.warmup):
        for name, indexes in tasks.items():
            if name not in parts:
                text = f"Subtopology {name} does not exist in the topology."
                raise KafkaError(ErrorCode.INVALID_REQUEST, text)
            count = parts[name].task_count
            wrong = next((index for index in indexes if not 0 <= index < count), None)
            if wrong is not None:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {wrong} for subtopology {name} is invalid. Number of tasks for this "
                    f"subtopology: {count}",
                )


def _updated(member: StreamsMember, beat: StreamsHeartbeat) -> StreamsMember:
    topology, timeout_ms = beat.topology, beat.rebalance_timeout_ms
    return replace(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        process_id=member.process_id if beat.process_id is None else beat.process_id,
        endpoint=member.endpoint if beat.endpoint is None else beat.endpoint,
        tags=member.tags if beat.tags is None else beat.tags,
        client_id=beat.client_id,
        client_host=beat.client_host,
    )
