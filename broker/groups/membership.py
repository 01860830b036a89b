"""Requests of group members: join, sync, heartbeat, leave. Checks, then moves the group.

The order of the checks is Kafka's, because clients act upon the first error that they receive.
Errors are raised as KafkaError; a join or a sync is answered when its time has come.
"""

from collections.abc import Callable, Mapping

from broker.groups.classic.group import Group, GroupState
from broker.groups.classic.members import Joining, JoinResult, Member, MemberClaim, SyncResult
from broker.groups.classic.rebalance import Rebalances
from broker.groups.consumer.classic_members import ClassicMembers
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.streams.group import StreamsGroup
from broker.runtime.deferred import Deferred
from protocol.errors import ErrorCode, KafkaError

NONE = ErrorCode.NONE
MAX_ID_CHARACTERS = 249  # of what a client says, in an id that we make of it


class Membership:
    """Joins, syncs, heartbeats and leaves. Used from the event loop only."""

    def __init__(
        self,
        rebalances: Rebalances,
        classic: ClassicMembers,
        new_suffix: Callable[[], str],
        max_members: int,
    ) -> None:
        """`classic` answers for consumer groups; `new_suffix` ends an id, and nobody guesses it."""
        self._rebalances = rebalances
        self._classic = classic
        self._new_suffix = new_suffix
        self._max_members = max_members

    # --- join ---

    def join(self, group: Group, joining: Joining) -> JoinResult | Deferred[JoinResult]:
        """A client wants to be a member, or to stay one. Raises KafkaError."""
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if isinstance(group.modern, ConsumerGroup | StreamsGroup) and group.is_empty:
            self._rebalances.become_classic(group, group.modern)
        if isinstance(group.modern, ConsumerGroup):
            return self._classic.join(group, group.modern, joining)
        if group.modern is not None:
            return JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "")
        if not group.takes(joining.member_id, self._max_members):
            raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
        if not group.can_share(joining):
            raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not joining.member_id:
            return self._join_new(group, joining)
        if joining.member_id in group.pending:
            return self._add(group, joining, joining.member_id)
        return self._rejoin(group, joining)

    def _join_new(self, group: Group, joining: Joining) -> JoinResult | Deferred[JoinResult]:
        named = joining.instance_id or joining.client_id
        member_id = f"{named[:MAX_ID_CHARACTERS]}-{self._new_suffix()}"
        if joining.instance_id is not None:
            if joining.instance_id in group.instances:
                return self._return_static(group, joining, member_id)
        elif joining.needs_known_id:
            if len(group.pending) >= self._max_members:
                raise KafkaError(ErrorCode.GROUP_MAX_SIZE_REACHED)
            self._rebalances.await_pending(group, member_id, joining.session_timeout_ms)
            return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return self._add(group, joining, member_id)

    def _add(self, group: Group, joining: Joining, member_id: str) -> Deferred[JoinResult]:
        member = self._rebalances.make_member(group, member_id, joining)
        group.add(member, joining.protocol_type)
        if group.state is GroupState.PREPARING and group.began_empty:
            group.was_joined = True
        answer = self._waits(member)
        self._rebalances.joining(member)
        self._rebalances.rebalance_or_complete(group)
        return answer

    def _rejoin(self, group: Group, joining: Joining) -> JoinResult | Deferred[JoinResult]:
        member = group.member(joining.member_id, joining.instance_id)
        if group.state is GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        is_same = member.protocols == joining.protocols
        if group.state is GroupState.COMPLETING and is_same:
            return self._rebalances.joined(group, member)
        is_leader = member.member_id == group.leader
        if group.state is GroupState.STABLE and is_same and not is_leader:
            return self._rebalances.joined(group, member)
        group.update(member, joining)
        answer = self._waits(member)
        self._rebalances.rebalance_or_complete(group)
        return answer

    def _return_static(
        self, group: Group, joining: Joining, member_id: str
    ) -> JoinResult | Deferred[JoinResult]:
        """Gives a restarted static member its own place again (KIP-345)."""
        assert joining.instance_id is not None
        member = group.members[group.instances[joining.instance_id]]
        old_id, old_leader, old_protocols = member.member_id, group.leader, member.protocols
        member.answer_join(JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
        member.answer_sync(SyncResult(ErrorCode.FENCED_INSTANCE_ID))
        group.replace(member, member_id)
        group.update(member, joining)
        member.client_id, member.client_host = joining.client_id, joining.client_host
        self._rebalances.alive(member)
        answer = self._waits(member)
        if group.state is not GroupState.STABLE:
            self._rebalances.rebalance_or_complete(group)
        elif group.select_protocol() != group.protocol_name:
            self._rebalances.prepare(group)
        else:
            self._keep_generation(group, member, joining, old_leader, (old_id, old_protocols))
        return answer

    def _keep_generation(
        self,
        group: Group,
        member: Member,
        joining: Joining,
        old_leader: str | None,
        before: tuple[str, tuple[object, ...]],
    ) -> None:
        """The generation goes on; only the new id is to be remembered."""
        generation, member_id = group.generation, member.member_id

        def remembered(error: int) -> None:
            if member.join_answer is None or member.member_id != member_id:
                return
            if group.state is not GroupState.STABLE or group.generation != generation:
                return  # a rebalance will answer
            if error:
                group.replace(member, before[0])
                member.answer_join(JoinResult(error, member_id))
                return
            member.answer_join(
                _as_before(self._rebalances.joined(group, member), joining, old_leader)
            )

        self._rebalances.remember(group, None, remembered)

    def _waits(self, member: Member) -> Deferred[JoinResult]:
        """From now on its join is unanswered; one that it sent before is not waited for."""
        member.answer_join(JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, member.member_id))
        member.join_answer = Deferred()
        return member.join_answer

    # --- sync ---

    def sync(
        self,
        group: Group,
        claim: MemberClaim,
        protocol: tuple[str | None, str | None],
        assignments: Mapping[str, bytes],
    ) -> SyncResult | Deferred[SyncResult]:
        """A member asks for its part; the leader brings everybody's. Raises KafkaError."""
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if isinstance(group.modern, ConsumerGroup):
            return self._classic.sync(group, group.modern, claim, protocol)
        member = group.claimed_member(claim)
        for wanted, present in zip(
            protocol, (group.protocol_type, group.protocol_name), strict=True
        ):
            if wanted is not None and wanted != present:
                raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is GroupState.PREPARING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        if group.state is GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._rebalances.asked(group, member)
        if group.state is GroupState.STABLE:
            self._rebalances.alive(member)
            return self._rebalances.synced(group, member)
        member.answer_sync(SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        answer = member.sync_answer = Deferred()
        if claim.member_id == group.leader:
            self._rebalances.assign(group, assignments)
        return answer

    # --- heartbeat, leave ---

    def heartbeat(self, group: Group, claim: MemberClaim) -> None:
        """A member lives. REBALANCE_IN_PROGRESS (27) sends it to join."""
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if isinstance(group.modern, ConsumerGroup):
            self._classic.heartbeat(group, group.modern, claim)
            return
        member = group.claimed_member(claim)
        if group.state is GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        self._rebalances.alive(member)
        if group.state is GroupState.PREPARING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)

    def leave(self, group: Group, member_id: str, instance_id: str | None) -> None:
        """A member goes; a static one perhaps by its instance id alone. Raises KafkaError."""
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if isinstance(group.modern, ConsumerGroup):
            self._classic.leave(group, group.modern, member_id, instance_id)
            return
        if not member_id:
            if instance_id is None or instance_id not in group.instances:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            member_id = group.instances[instance_id]
        elif member_id in group.pending:
            group.forget_pending(member_id)
            self._rebalances.maybe_complete_join(group)
            return
        self._rebalances.remove(group, group.member(member_id, instance_id))


def _as_before(result: JoinResult, joining: Joining, old_leader: str | None) -> JoinResult:
    """Keeps a leader that came back from assigning again, by the flag or by its old member id."""
    if joining.may_skip_assignment:
        is_leader = result.leader == result.member_id
        return result._replace(skip_assignment=is_leader)
    return result._replace(leader=old_leader or "", members=())
