"""Share groups at work (KIP-932): heartbeats move them, time moves them, topics move them.

A change is made in memory at once and is answered when it is durable. Rules, and their order:
Kafka's `GroupMetadataManager`; but that a member which joins hears of its partitions at once, where
their states have to be made first: a Kafka says so with the next heartbeat. Used from the event
loop only.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from uuid import UUID

from broker.groups.classic.group import Group
from broker.groups.classic.members import Footprint
from broker.groups.row_writer import RowWriter
from broker.groups.share.altering import Altering, Place, Refused
from broker.groups.share.forgetting import Forgetting
from broker.groups.share.group import ShareGroup
from broker.groups.share.heartbeat import ShareHeard, ShareHeartbeat, check_epoch
from broker.groups.share.initializing import Initializing
from broker.groups.share.member import ShareMember
from broker.groups.share.persister import SharePersister
from broker.groups.share.rounds import StateRounds
from broker.groups.subscriptions import Target
from broker.groups.surroundings import Surroundings
from broker.runtime.deadlines import Deadline, Deadlines
from broker.runtime.deferred import Deferred, hand_on
from broker.runtime.event_log import event
from broker.runtime.gathering import chain
from protocol.errors import ErrorCode, KafkaError

ShareOutcome = ShareHeard | Deferred[ShareHeard]


class ShareGroups:
    """Moves share groups."""

    def __init__(
        self,
        deadlines: Deadlines,
        rows: RowWriter,
        around: Surroundings,
        persister: SharePersister,
        footprint: Footprint,
    ) -> None:
        """Without groups."""
        self._deadlines = deadlines
        self._rows = rows
        self._around = around
        self._footprint = footprint
        self._rounds = StateRounds()
        self._initializing = Initializing(persister, rows, self._rounds)
        self._forgetting = Forgetting(persister, rows)
        self._altering = Altering(persister, rows, self._rounds)
        self.count: int = 0
        """Epochs that began."""

    def share_of(self, group: Group) -> ShareGroup:
        """The group as a share group, made one if it is new."""
        if isinstance(group.modern, ShareGroup):
            return group.modern
        made = ShareGroup(group.group_id, self._footprint)
        group.become(made)
        return made

    # --- heartbeats ---

    def check_room(self, share: ShareGroup | None, member_id: str) -> None:
        """GROUP_MAX_SIZE_REACHED (81) for a stranger to a group that is full."""
        members = {} if share is None else share.members
        limit = self._around.settings().group_share_max_size
        if member_id not in members and len(members) >= limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The share group has reached its maximum capacity of {limit} members.",
            )

    def heartbeat(self, share: ShareGroup, beat: ShareHeartbeat) -> ShareOutcome:
        """A member joins, or lives. The group has room. Raises KafkaError."""
        known = share.members.get(beat.member_id)
        member = ShareMember(beat.member_id) if known is None and beat.joins else known
        if member is None:
            member = share.member(beat.member_id)
        check_epoch(member, beat)
        updated = _updated(member, beat)
        share.put(updated)
        reads_others = updated.names != member.names
        after = self._settled(share, updated, bumps=reads_others)
        self.alive(share, after)
        wants_all = beat.joins or beat.names is not None or after.assigned != member.assigned
        heard = ShareHeard(after.member_id, after.epoch, after.assigned if wants_all else None)
        return self._stored(share, heard, may_wait=beat.joins or reads_others)

    def _settled(
        self, share: ShareGroup, member: ShareMember, *, bumps: bool, at_once: bool = False
    ) -> ShareMember:
        """Decides who is to read what, if that is due, and gives the member its part."""
        image, now_ms = self._around.image(), self._around.now_ms()
        bumps = bumps or share.is_assignment_pending
        if bumps or share.seen_image is not image:
            topics_changed = share.sees(image)
            if bumps or topics_changed:
                self._begin_epoch(share)
        if share.epoch > share.target_epoch and (at_once or self._may_assign(share, now_ms)):
            share.assign(image, self._around.settings().group_share_assignors, now_ms)
        return share.reconcile(member, image)

    def _may_assign(self, share: ShareGroup, now_ms: int) -> bool:
        """False for a while after the last assignment; a clock that was set back holds none up."""
        if not share.assigned_ms:
            return True
        interval_ms = self._around.group_settings(share.group_id).share_assignment_interval_ms
        return not 0 <= now_ms - share.assigned_ms < interval_ms

    def _begin_epoch(self, share: ShareGroup) -> None:
        share.begin_epoch()
        self.count += 1
        event(
            "share_group_epoch", "debug", group=share.group_id, epoch=share.epoch,
            members=len(share.members),
        )  # fmt: skip

    def _stored(self, share: ShareGroup, heard: ShareHeard, *, may_wait: bool) -> ShareOutcome:
        """Writes what changed, and makes the states of partitions that lack them."""
        missing = self._initializing.begin(share, self._around.image())
        waits = may_wait and self._rounds.is_under_way(share)
        answer: Deferred[ShareHeard] = Deferred()
        then = partial(self._written, share, heard, missing, answer, waits=waits)
        try:
            written = self._rows.store(share)
        except Exception as error:  # noqa: BLE001 - the round has to end
            then(None, error)
            return answer
        if written is None and not missing and not waits:
            return heard
        if written is None:
            then(None, None)
        else:
            written.listen(then)
        return answer

    def _written(
        self,
        share: ShareGroup,
        heard: ShareHeard,
        missing: Target,
        answer: Deferred[ShareHeard],
        _: None,
        error: BaseException | None,
        *,
        waits: bool,
    ) -> None:
        if error is not None:
            if missing:
                self._initializing.end(share)
            answer.fail(error)
            return
        waits = waits and self._rounds.is_under_way(share)
        if waits:
            is_made = self._initializing.is_under_way(share)
            again = partial(self._again, share, heard, answer, is_made=is_made)
            self._rounds.when_done(share, again)
        if missing:
            self._initializing.make(share, missing)
        if not waits:
            answer.resolve(heard)

    def _again(
        self,
        share: ShareGroup,
        heard: ShareHeard,
        answer: Deferred[ShareHeard],
        *,
        is_made: bool,
    ) -> None:
        """States were made, or starts set: the member that waited receives its part of them.

        After starts that were set, the states of other partitions are made before.
        """
        if share.is_over:  # it went to another coordinator meanwhile
            answer.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
            return
        try:
            heard = self._part(share, heard)
            if is_made:
                self._answer(share, heard, answer)
                return
            outcome = self._stored(share, heard, may_wait=True)
        except Exception as error:  # noqa: BLE001 - who waits must not wait for ever
            answer.fail(error)
            return
        if isinstance(outcome, Deferred):
            outcome.listen(partial(hand_on, answer))
        else:
            answer.resolve(outcome)

    def _part(self, share: ShareGroup, heard: ShareHeard) -> ShareHeard:
        member = share.members.get(heard.member_id)
        if member is None:
            return heard
        after = self._settled(share, member, bumps=False, at_once=True)
        return ShareHeard(after.member_id, after.epoch, after.assigned)

    def _answer(self, share: ShareGroup, heard: ShareHeard, answer: Deferred[ShareHeard]) -> None:
        def stored(_: None, error: BaseException | None) -> None:
            if error is None:
                answer.resolve(heard)
            else:
                answer.fail(error)

        chain(lambda: self._rows.store(share)).listen(stored)

    # --- members that go ---

    def leave(self, share: ShareGroup, beat: ShareHeartbeat) -> ShareOutcome:
        """A member goes. UNKNOWN_MEMBER_ID (25)."""
        self._fence(share, share.member(beat.member_id))
        answer: Deferred[ShareHeard] = Deferred()
        self._answer(share, ShareHeard(beat.member_id, beat.epoch), answer)
        return answer

    def alive(self, share: ShareGroup, member: ShareMember) -> None:
        """Restarts the session of a member."""
        session = share.sessions.get(member.member_id)
        if session is None:
            session = share.sessions[member.member_id] = Deadline()
            session.callback = partial(self._is_silent, share, member.member_id)
        settings = self._around.group_settings(share.group_id)
        self._deadlines.set(session, settings.share_session_timeout_ms)

    def _is_silent(self, share: ShareGroup, member_id: str) -> None:
        member = share.members.get(member_id)
        if member is not None and not share.is_over:
            event("share_member_silent", "debug", group=share.group_id, member=member_id)
            self._fence(share, member)
            self._rows.store_later(share)

    def _fence(self, share: ShareGroup, member: ShareMember) -> None:
        """A member goes; its part falls to the others with their next heartbeats."""
        share.remove(member)
        share.sees(self._around.image())
        self._begin_epoch(share)

    # --- starts that are set ---

    def begin_at(self, share: ShareGroup, starts: Mapping[Place, int]) -> Deferred[Refused]:
        """Sets where a group without members begins in partitions; settled when that is durable,
        with those that could not be set. Fails with KafkaError: NON_EMPTY_GROUP (68) when a
        member joined before it began.
        """
        return self._altering.begin_at(share, starts, self._around.image())

    # --- topics that go ---

    def forget(self, share: ShareGroup, topics: Collection[UUID]) -> Deferred[None]:
        """Deletes the group's states in topics. Fails with KafkaError."""
        return self._forgetting.forget(share, topics, self._around.image())

    def forget_all(self, share: ShareGroup) -> Deferred[None]:
        """Deletes the group's states in all topics, before the group itself goes."""
        return self.forget(share, frozenset(share.states.names))

    def topics_deleted(self, share: ShareGroup) -> None:
        """Forgets topics that are gone; the share coordinator forgets their states."""
        if self._forgetting.drop(share, self._around.image()):
            self._rows.store_later(share)


def _updated(member: ShareMember, beat: ShareHeartbeat) -> ShareMember:
    return replace(
        member,
        rack_id=member.rack_id if beat.rack_id is None else beat.rack_id,
        names=member.names if beat.names is None else frozenset(beat.names),
        client_id=beat.client_id,
        client_host=beat.client_host,
    )
