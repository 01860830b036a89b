"""Consumer groups at work (KIP-848): heartbeats move them, time moves them, topics move them.

A change is made in memory at once and is answered when it is durable. Rules, and their order:
Kafka's `GroupMetadataManager`. Used from the event loop only.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from broker.groups.classic.group import Group
from broker.groups.consumer.group import ConsumerGroup, Timers
from broker.groups.consumer.heartbeat import (
    ConsumerHeartbeat,
    Heard,
    check_expression,
    check_matched,
)
from broker.groups.consumer.member import LEFT_FOR_A_WHILE, ConsumerMember, MemberState
from broker.groups.consumer.reconciliation import Owned
from broker.groups.consumer.topic_matching import LookUp, TopicMatching
from broker.groups.row_writer import GroupLog, RowWriter
from broker.groups.surroundings import Surroundings
from broker.runtime.deadlines import Deadline, Deadlines
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from protocol.errors import ErrorCode, KafkaError

HeartbeatOutcome = tuple[Heard, Deferred[None] | None]
"""Answer to a member, and the write that has to be durable before."""


class ConsumerGroups:
    """Moves consumer groups."""

    def __init__(
        self, deadlines: Deadlines, log: GroupLog, around: Surroundings, look_up: LookUp
    ) -> None:
        """`look_up` matches expressions with names of topics, away from the loop."""
        self._deadlines = deadlines
        self.rows = RowWriter(log)
        self._around = around
        self._matching = TopicMatching(around, look_up, self._topics_matched)
        self.on_fence: Callable[[Group, ConsumerGroup], bool] = _stays
        """Called when members went; True when the group is a classic one from now on."""
        self.count: int = 0
        """Epochs that began."""

    # --- heartbeats ---

    def heartbeat(
        self, group: Group, consumer: ConsumerGroup, beat: ConsumerHeartbeat
    ) -> HeartbeatOutcome:
        """A member joins, or lives. The group is a consumer group, and has room."""
        check_expression(beat, consumer)
        member = self._member_of(consumer, beat)
        updated = _updated(member, beat)
        check_matched(updated.regex, consumer)
        changed = self.subscribe(consumer, member, updated)
        after = self.settle(consumer, updated, beat.owned, changed=changed)
        self.alive(group, consumer, after)
        self._matching.refresh(group, consumer, beat.shows)
        wants_all = beat.joins or beat.is_full
        is_new = _partitions(after) != _partitions(member)
        heard = Heard(after.member_id, after.epoch, after.assigned if wants_all or is_new else None)
        return heard, self.rows.store(consumer)

    def _member_of(self, consumer: ConsumerGroup, beat: ConsumerHeartbeat) -> ConsumerMember:
        """The member, or a new one that is not in the group yet; a static one may be replaced."""
        if beat.instance_id is None:
            known = consumer.members.get(beat.member_id)
            if known is None and beat.joins:
                return ConsumerMember(beat.member_id)
            member = known or consumer.member(beat.member_id)
        else:
            static = consumer.static_member(beat.instance_id)
            if beat.joins:
                return self.static_joins(consumer, static, beat.member_id, is_classic=False)
            member = named_static(static, beat.member_id, beat.instance_id)
        _check_epoch(member, beat)
        return member

    def static_joins(
        self,
        consumer: ConsumerGroup,
        static: ConsumerMember | None,
        member_id: str,
        *,
        is_classic: bool,
    ) -> ConsumerMember:
        """Admits a static member (again): UNRELEASED_INSTANCE_ID (111) while another one lives."""
        if static is None or static.member_id == member_id:
            return static or ConsumerMember(member_id)
        is_there = static.epoch != LEFT_FOR_A_WHILE
        if is_there and static.classic is None and not is_classic:
            raise KafkaError(
                ErrorCode.UNRELEASED_INSTANCE_ID,
                f"Static member {member_id} with instance id {static.instance_id} cannot join the "
                f"group because the instance id is owned by {static.member_id} member.",
            )
        again = replace(static, member_id=member_id, epoch=0, previous_epoch=0)
        consumer.replace(static, again)
        return again

    def leave(
        self, group: Group, consumer: ConsumerGroup, beat: ConsumerHeartbeat
    ) -> HeartbeatOutcome:
        """A member goes; a static one perhaps for a while only."""
        if beat.instance_id is None:
            member = consumer.member(beat.member_id)
        else:
            static = consumer.static_member(beat.instance_id)
            member = named_static(static, beat.member_id, beat.instance_id)
        if beat.epoch == LEFT_FOR_A_WHILE and beat.instance_id is not None:
            consumer.put(replace(member, epoch=LEFT_FOR_A_WHILE, revoking={}))
        else:
            self.fence(group, consumer, [member])
        return Heard(member.member_id, beat.epoch), self.rows.store(consumer)

    # --- the steps of every change ---

    def subscribe(
        self, consumer: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember
    ) -> bool:
        """The member says what it says now; whether that is another subscription."""
        image = self._around.image()
        consumer.put(updated)
        names_changed = updated.names != member.names
        regex_changed = updated.regex != member.regex
        if regex_changed and member.regex and member.regex not in consumer.patterns:
            consumer.forget_expression(member.regex)
        is_known = not updated.regex or updated.regex in consumer.expressions
        bumps = names_changed or (regex_changed and is_known)
        if bumps or consumer.seen_image is not image:
            topics_changed = consumer.sees(image)
            if bumps or topics_changed:
                self._begin_epoch(consumer)
        return names_changed or regex_changed

    def settle(
        self,
        consumer: ConsumerGroup,
        member: ConsumerMember,
        owned: Owned | None,
        *,
        changed: bool,
    ) -> ConsumerMember:
        """Decides who is to read what, if that is due, and takes the member a step towards it."""
        image = self._around.image()
        if consumer.epoch > consumer.target_epoch:
            default = self._around.settings().group_consumer_assignors.split(",")[0]
            consumer.assign(image, default, self._around.now_ms())
        return consumer.reconcile(member, image, owned, changed=changed)

    def _begin_epoch(self, consumer: ConsumerGroup) -> None:
        consumer.begin_epoch()
        self.count += 1
        event(
            "consumer_group_epoch", "debug", group=consumer.group_id, epoch=consumer.epoch,
            members=len(consumer.members),
        )  # fmt: skip

    def fence(
        self, group: Group, consumer: ConsumerGroup, members: Iterable[ConsumerMember]
    ) -> None:
        """Members go; what they had falls to the others."""
        gone = list(members)
        for member in gone:
            consumer.remove(member)
        if not gone or self.on_fence(group, consumer):
            return
        consumer.sees(self._around.image())
        self._begin_epoch(consumer)

    # --- time ---

    def alive(self, group: Group, consumer: ConsumerGroup, member: ConsumerMember) -> None:
        """Restarts the session of a member, and the wait for partitions that it gives back."""
        timers = consumer.timers.get(member.member_id)
        if timers is None:
            timers = consumer.timers[member.member_id] = Timers(Deadline(), Deadline())
            timers.session.callback = partial(self._is_over, group, consumer, member.member_id)
        if member.classic is not None:
            self._deadlines.set(timers.session, member.classic.session_timeout_ms)
            return
        settings = self._around.group_settings(group.group_id)
        self._deadlines.set(timers.session, settings.consumer_session_timeout_ms)
        if member.state is not MemberState.UNREVOKED:
            timers.rebalance.cancel()
        elif timers.rebalance.at is None:
            self.expect(group, consumer, member)

    def expect(self, group: Group, consumer: ConsumerGroup, member: ConsumerMember) -> None:
        """The member has its rebalance time-out to get out of where it is."""
        deadline = consumer.timers[member.member_id].rebalance
        late = partial(self._is_late, group, consumer, member.member_id, member.epoch)
        deadline.callback = late
        self._deadlines.set(deadline, member.rebalance_timeout_ms)

    def _is_over(self, group: Group, consumer: ConsumerGroup, member_id: str) -> None:
        member = consumer.members.get(member_id)
        if member is not None and group.modern is consumer:
            event("consumer_member_silent", "debug", group=group.group_id, member=member_id)
            self.fence(group, consumer, [member])
            self.rows.store_later(consumer)

    def _is_late(self, group: Group, consumer: ConsumerGroup, member_id: str, epoch: int) -> None:
        member = consumer.members.get(member_id)
        if member is not None and member.epoch == epoch and group.modern is consumer:
            event("consumer_member_late", group=group.group_id, member=member_id, epoch=epoch)
            self.fence(group, consumer, [member])
            self.rows.store_later(consumer)

    def _topics_matched(self, consumer: ConsumerGroup, *, changed: bool) -> None:
        """Expressions were looked up; `changed`: some match other topics than before."""
        if consumer.sees(self._around.image()) or changed:
            self._begin_epoch(consumer)
        self.rows.store_later(consumer)


def _stays(_: Group, __: ConsumerGroup) -> bool:
    return False


def named_static(static: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """The static member; UNKNOWN_MEMBER_ID (25), or FENCED_INSTANCE_ID (82) for another's id."""
    if static is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{static.member_id}.",
        )
    return static


def _check_epoch(member: ConsumerMember, beat: ConsumerHeartbeat) -> None:
    """FENCED_MEMBER_EPOCH (110), but for an epoch whose answer may have been lost."""
    if beat.joins or beat.epoch == member.epoch:
        return
    side = "greater" if beat.epoch > member.epoch else "smaller"
    if side == "smaller" and beat.epoch == member.previous_epoch and _is_part(beat, member):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {side} member epoch ({beat.epoch}) than the one known "
        f"by the group coordinator ({member.epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def _is_part(beat: ConsumerHeartbeat, member: ConsumerMember) -> bool:
    return beat.owned is not None and all(
        indexes <= member.assigned.get(topic, {}).keys() for topic, indexes in beat.owned.items()
    )


def _updated(member: ConsumerMember, beat: ConsumerHeartbeat) -> ConsumerMember:
    return replace(
        member,
        instance_id=member.instance_id if beat.instance_id is None else beat.instance_id,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms
        if beat.rebalance_timeout_ms == -1
        else beat.rebalance_timeout_ms,
        assignor=member.assignor if beat.assignor is None else beat.assignor,
        names=member.names if beat.names is None else frozenset(beat.names),
        regex=member.regex if beat.regex is None else beat.regex,
        client_id=beat.client_id,
        client_host=beat.client_host,
        classic=None,
    )


def _partitions(member: ConsumerMember) -> dict[object, frozenset[int]]:
    return {topic: frozenset(each) for topic, each in member.assigned.items()}
