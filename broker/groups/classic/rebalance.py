"""Rebalances of a group, from one generation to the next: waits, deadlines, answers.

The rules, in their order, are those of Kafka's `GroupMetadataManager` for classic groups: a first
rebalance is delayed while members come, a later one until all have joined or the slowest one's
time is over; dynamic members who stay away are dropped, static ones only by their session. State
changes run to completion; after a write to the disk a callback continues, which first checks that
the group is still in the same state.
"""

from collections.abc import Callable, Mapping
from functools import partial

from broker.groups.classic.group import Group, GroupState, ModernGroup
from broker.groups.classic.members import Joining, JoinResult, Member, SyncResult
from broker.groups.records.classic import group_key, group_value
from broker.groups.row_writer import GroupLog, RowWriter
from broker.runtime.deadlines import Deadline, Deadlines
from broker.runtime.event_log import event
from protocol.errors import ErrorCode, KafkaError

NONE = ErrorCode.NONE
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000  # who has not said that it lives by then is dropped


class Rebalances:
    """Moves groups from state to state. Used from the event loop only."""

    def __init__(
        self,
        deadlines: Deadlines,
        log: GroupLog,
        now_ms: Callable[[], int],
        initial_delay_ms: int,
    ) -> None:
        """`now_ms` is the wall clock, which dates states."""
        self._deadlines = deadlines
        self._rows = RowWriter(log)
        self._now_ms = now_ms
        self._initial_delay_ms = initial_delay_ms
        self.count: int = 0
        """Generations that began."""

    # --- sessions ---

    def alive(self, member: Member) -> None:
        """Restarts the session of a member that was heard of."""
        self._deadlines.set(member.session, member.session_timeout_ms)

    def joining(self, member: Member) -> None:
        """A new member cannot say that it lives before it has its answer."""
        member.is_new = True
        self._deadlines.set(member.session, NEW_MEMBER_JOIN_TIMEOUT_MS)

    def await_pending(self, group: Group, member_id: str, session_timeout_ms: int) -> None:
        """An id was given out: its owner is expected to join with it."""
        deadline = Deadline()
        deadline.callback = partial(self._pending_is_late, group, member_id)
        group.pending[member_id] = deadline
        self._deadlines.set(deadline, session_timeout_ms)

    def make_member(self, group: Group, member_id: str, joining: Joining) -> Member:
        """A member whose session can end; it is not in the group yet."""
        member = Member(member_id, joining)
        member.session.callback = partial(self._session_is_over, group, member)
        return member

    def _pending_is_late(self, group: Group, member_id: str) -> None:
        if group.pending.pop(member_id, None) is not None:
            self.maybe_complete_join(group)

    def _session_is_over(self, group: Group, member: Member) -> None:
        if group.members.get(member.member_id) is not member:
            return
        waits = member.join_answer is not None or member.sync_answer is not None
        if waits and not member.is_new:
            return
        event("group_member_expired", group=group.group_id, member=member.member_id)
        self.remove(group, member)

    # --- who comes and goes ---

    def remove(self, group: Group, member: Member) -> None:
        """A member goes, of its own will or not; the others rebalance."""
        lost = ErrorCode.UNKNOWN_MEMBER_ID
        member.answer_join(JoinResult(lost, member.member_id))
        member.answer_sync(SyncResult(lost))
        group.remove(member)
        if group.state in {GroupState.STABLE, GroupState.COMPLETING}:
            self.prepare(group)
        else:
            self.maybe_complete_join(group)

    def rebalance_or_complete(self, group: Group) -> None:
        """Begins a rebalance after a join, or completes the present one."""
        if group.state is GroupState.PREPARING:
            self.maybe_complete_join(group)
        else:
            self.prepare(group)

    # --- the phase of joining ---

    def prepare(self, group: Group) -> None:
        """A rebalance begins."""
        if group.state is GroupState.COMPLETING:
            self.drop_assignment(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.sync_deadline.cancel()
        group.began_empty = group.state is GroupState.EMPTY
        group.turn(GroupState.PREPARING, self._now_ms())
        if group.began_empty:
            group.was_joined = False
            delay = self._initial_delay_ms
            left = max(group.rebalance_timeout_ms - delay, 0)
            self._hold_back(group, delay, left)
        elif group.all_joined:
            self._complete_join(group)
        else:
            self._wait_for_joins(group)

    def maybe_complete_join(self, group: Group) -> None:
        """Perhaps the last one who was waited for has come, or gone."""
        if group.state is GroupState.PREPARING and group.all_joined and not group.began_empty:
            self._complete_join(group)

    def _hold_back(self, group: Group, delay_ms: int, left_ms: int) -> None:
        group.join_deadline.callback = partial(self._held_back, group, delay_ms, left_ms)
        self._deadlines.set(group.join_deadline, delay_ms)

    def _held_back(self, group: Group, delay_ms: int, left_ms: int) -> None:
        if group.was_joined and left_ms > 0:
            group.was_joined = False
            delay = min(self._initial_delay_ms, left_ms)
            self._hold_back(group, delay, max(left_ms - delay_ms, 0))
        else:
            self._complete_join(group)

    def _wait_for_joins(self, group: Group) -> None:
        group.join_deadline.callback = partial(self._complete_join, group)
        self._deadlines.set(group.join_deadline, group.rebalance_timeout_ms)

    def _complete_join(self, group: Group) -> None:
        group.join_deadline.cancel()
        if group.state is not GroupState.PREPARING:
            return
        for member in list(group.members.values()):
            if member.join_answer is None and not member.is_static:
                group.remove(member)
        if group.members and not group.elect():
            self._wait_for_joins(group)
            return
        group.next_generation(self._now_ms())
        self.count += 1
        event(
            "group_generation", "debug", group=group.group_id, generation=group.generation,
            members=len(group.members),
        )  # fmt: skip
        if group.members:
            self._begin_sync(group)
        else:
            self.remember(group, None, _whatever)

    # --- the phase of assigning ---

    def _begin_sync(self, group: Group) -> None:
        group.unsynced = set(group.members)
        group.sync_deadline.callback = partial(self._sync_is_late, group, group.generation)
        self._deadlines.set(group.sync_deadline, group.rebalance_timeout_ms)
        for member in group.members.values():
            self.alive(member)
            member.is_new = False
            member.answer_join(self.joined(group, member))

    def joined(self, group: Group, member: Member) -> JoinResult:
        """The answer to a member of this generation."""
        leads = member.member_id == group.leader
        return JoinResult(
            NONE,
            member.member_id,
            group.generation,
            group.protocol_type,
            group.protocol_name,
            group.leader or "",
            group.views() if leads else (),
        )

    def synced(self, group: Group, member: Member) -> SyncResult:
        """The answer to a member of a Stable group."""
        return SyncResult(NONE, member.assignment, group.protocol_type, group.protocol_name)

    def asked(self, group: Group, member: Member) -> None:
        """A member has asked for its part."""
        group.unsynced.discard(member.member_id)
        if not group.unsynced:
            group.sync_deadline.cancel()

    def assign(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        """The leader has spoken: it counts once it is remembered."""
        known = {name: assignments.get(name, b"") for name in group.members}
        generation = group.generation

        def remembered(error: int) -> None:
            if group.state is not GroupState.COMPLETING or group.generation != generation:
                return
            if error:
                self.drop_assignment(group, error)
                self.prepare(group)
            else:
                self._share_out(group, known)

        self.remember(group, known, remembered)

    def _share_out(self, group: Group, assignments: Mapping[str, bytes]) -> None:
        group.turn(GroupState.STABLE, self._now_ms())
        for member in list(group.members.values()):
            group.give(member, assignments.get(member.member_id, b""))
            if member.answer_sync(self.synced(group, member)):
                self.alive(member)

    def drop_assignment(self, group: Group, error: int) -> None:
        """Drops the assignment: members that wait for it receive the error."""
        for member in list(group.members.values()):
            group.give(member, b"")
            if member.answer_sync(SyncResult(error)):
                self.alive(member)

    def _sync_is_late(self, group: Group, generation: int) -> None:
        if group.generation != generation or group.state not in {
            GroupState.COMPLETING,
            GroupState.STABLE,
        }:
            return
        late = [group.members[each] for each in group.unsynced if each in group.members]
        if not late:
            return
        for member in late:
            event("group_member_never_synced", group=group.group_id, member=member.member_id)
            group.remove(member)
        self.prepare(group)

    # --- what is remembered ---

    def remember(
        self, group: Group, assignments: dict[str, bytes] | None, then: Callable[[int], None]
    ) -> None:
        """Writes the generation; `then` hears the error, or 0."""
        row = group_key(group.group_id), group_value(group.remembered(assignments))

        def written(_: None, error: BaseException | None) -> None:
            code: int = NONE
            if error is not None:
                code = ErrorCode.UNKNOWN_SERVER_ERROR
                if isinstance(error, KafkaError) and error.code != ErrorCode.MESSAGE_TOO_LARGE:
                    code = error.code
            then(code)

        self._rows.write(group, [row]).listen(written)

    def dissolve(self, group: Group) -> None:
        """The group is a consumer group from now on: who waits is sent to join it."""
        for member in group.dissolve(self._now_ms()):
            member.answer_join(JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
            member.answer_sync(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))

    def become_classic(self, group: Group, modern: ModernGroup) -> None:
        """The group has no members, and gets a classic one: it is a classic group from now on."""
        modern.rows += modern.tombstones()
        self._rows.store_later(modern)
        modern.end()
        group.modern = None

    def close(self, group: Group) -> None:
        """The group is no more, here: nobody in it waits any longer (NOT_COORDINATOR, 16)."""
        group.end(self._now_ms())
        for member in group.members.values():
            member.answer_join(JoinResult(ErrorCode.NOT_COORDINATOR, member.member_id))
            member.answer_sync(SyncResult(ErrorCode.NOT_COORDINATOR))


def _whatever(_: int) -> None:
    """An Empty group that could not be stored is stored by its next generation."""
