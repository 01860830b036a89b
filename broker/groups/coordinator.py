"""The coordinator: which groups there are, who may ask for them now, what time does to them.

It answers COORDINATOR_LOAD_IN_PROGRESS (14) for groups whose partition is still being read after
the start, and COORDINATOR_NOT_AVAILABLE (15) for those of a partition that cannot be read: never
wrong data. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from broker.groups.classic.group import Group, GroupState, Place
from broker.groups.classic.members import Footprint
from broker.groups.classic.rebalance import Rebalances
from broker.groups.commits import Commits
from broker.groups.consumer.classic_members import ClassicMembers
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.groups import ConsumerGroups
from broker.groups.consumer.migration import Migration
from broker.groups.consumer.topic_matching import match_all
from broker.groups.expiry import expired_offsets
from broker.groups.group_type import GroupType
from broker.groups.loading import RememberedGroups, remembered
from broker.groups.membership import Membership
from broker.groups.offsets_topic import offsets_topic
from broker.groups.pending import PendingOffsets
from broker.groups.removal import Removals
from broker.groups.restoring import (
    restore_classic,
    restore_consumers,
    restore_shares,
    restore_streams,
)
from broker.groups.room import GroupRoom
from broker.groups.row_writer import RowWriter
from broker.groups.share.group import ShareGroup
from broker.groups.share.groups import ShareGroups
from broker.groups.share.persister import SharePersister
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.groups import StreamsGroups
from broker.groups.streams.internal_topics import InternalTopics
from broker.groups.surroundings import Surroundings
from broker.groups.transactional_commits import TransactionalCommits
from broker.runtime.deadlines import Deadlines, GroupTime
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.runtime.gathering import chain, wait_for
from broker.state.loading import StateLoading
from broker.state.reading import LeftOut
from broker.state.state_topic import StateTopic
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID
from storage.env import Clock, Rng

if TYPE_CHECKING:
    from broker.guards.clock_guard import ClockWatch
    from broker.partitions.partition import Partition
    from broker.runtime.memory_account import MemoryAccount
    from broker.state.services import StateServices

T = TypeVar("T")

MINUTE_MS = 60_000
MAX_GROUP_ID_BYTES = 4096  # Kafka: whatever fits a record's key


class GroupCoordinator:
    """All groups of this broker."""

    groups: dict[str, Group]
    footprint: Footprint
    topic: StateTopic
    deadlines: Deadlines
    rebalances: Rebalances
    consumers: ConsumerGroups
    shares: ShareGroups
    streams: StreamsGroups
    internal_topics: InternalTopics
    """Makes the topics that streams groups need."""
    migration: Migration
    membership: Membership
    commits: Commits
    pending: PendingOffsets
    """Offsets of transactions that have not ended."""
    transactional_commits: TransactionalCommits
    removals: Removals
    room: GroupRoom
    loading: StateLoading[RememberedGroups]

    def __init__(
        self,
        services: "StateServices",
        clock_watch: "ClockWatch",
        *,
        machine: Clock,
        rng: Rng,
        loop: asyncio.AbstractEventLoop,
        memory: "MemoryAccount",
        persister: SharePersister,
    ) -> None:
        """Knows nothing until `load`. `machine` is the clock that nobody holds; `persister` has the
        states of partitions that share groups read.
        """
        settings = services.config.broker_config
        self._topics = services.topics
        self._clock = clock = services.clock
        self._clock_watch = clock_watch
        self._lane = services.lane
        self._rng = rng
        self._settings = settings
        self.groups = {}
        self.footprint = Footprint()
        self.topic = offsets_topic(services)
        self.deadlines = Deadlines(loop, GroupTime(clock, machine))
        self.rebalances = Rebalances(
            self.deadlines,
            self.topic,
            clock.now_ms,
            settings.group_initial_rebalance_delay_ms,
        )
        around = Surroundings(
            clock.now_ms,
            lambda: services.topics.image,
            lambda: services.config.broker_config,
            services.config.group_config,
        )
        look_up = partial(self._lane.run, match_all)
        self.consumers = ConsumerGroups(self.deadlines, self.topic, around, look_up)
        self.migration = Migration(self.consumers, self.rebalances, around, self.footprint)
        self.consumers.on_fence = self.migration.maybe_downgrade
        rows = RowWriter(self.topic)
        self.streams = StreamsGroups(self.deadlines, self.rebalances, rows, around, self.footprint)
        self.internal_topics = InternalTopics(services.topics, services.rules, clock)
        self.membership = Membership(
            self.rebalances,
            ClassicMembers(self.consumers, around, self._new_id),
            self._new_id,
            settings.group_max_size,
        )
        self.shares = ShareGroups(self.deadlines, rows, around, persister, self.footprint)
        self.pending = PendingOffsets()
        self.commits = Commits(self.rebalances, self.topic, self.pending)
        self.transactional_commits = TransactionalCommits(self.rebalances, self.topic, self.pending)
        self.removals = Removals(self.groups, self.commits, self.rebalances, self.topic)
        self.room = GroupRoom(
            settings, memory, self.footprint, (self.commits, self.pending), self.topic
        )
        self.loading = StateLoading(
            services.lane,
            self.topic,
            remembered,
            self._restore,
            on_failed=_not_loaded,
            on_unreadable=_unreadable,
        )

    def _new_id(self) -> str:
        return str(self._rng.uuid())

    # --- who is asked for ---

    def check_loaded(self, group_id: str) -> None:
        """Raises when nothing can be said of this group now."""
        self.loading.check(group_id)
        self.removals.check(group_id)

    def check_loaded_or_wait(self, group_id: str) -> None:
        """As `check_loaded`; of a group that has just got another coordinator, as if it were being
        read: COORDINATOR_LOAD_IN_PROGRESS (14).
        """
        self.loading.check_or_wait(group_id)

    def require(self, group_id: str, missing: ErrorCode) -> Group:
        """A group that must be there, or an error of this code. Raises KafkaError."""
        self.check_loaded(group_id)
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(missing, f"Group {group_id[:MAX_GROUP_ID_BYTES]} not found.")
        return group

    def require_classic(self, group_id: str) -> Group:
        """A group of the classic protocol that must be there: GROUP_ID_NOT_FOUND (69)."""
        group = self.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if group.modern is not None:
            text = f"Group {group_id} is not a classic group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        return group

    def require_consumer(self, group_id: str) -> tuple[Group, ConsumerGroup]:
        """A consumer group that must be there: GROUP_ID_NOT_FOUND (69)."""
        group = self.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if not isinstance(group.modern, ConsumerGroup):
            text = f"Group {group_id} is not a consumer group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        return group, group.modern

    def require_share(self, group_id: str) -> tuple[Group, ShareGroup]:
        """A share group that must be there: GROUP_ID_NOT_FOUND (69)."""
        group = self.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if not isinstance(group.modern, ShareGroup):
            text = f"Group {group_id} is not a share group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        return group, group.modern

    def require_streams(self, group_id: str) -> tuple[Group, StreamsGroup]:
        """A streams group that must be there: GROUP_ID_NOT_FOUND (69)."""
        group = self.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        if not isinstance(group.modern, StreamsGroup):
            text = f"Group {group_id} is not a streams group."
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
        return group, group.modern

    def find_or_make(self, group_id: str) -> Group:
        """A group; a new one, without members, when there is none. INVALID_GROUP_ID (24)."""
        self.check_loaded(group_id)
        group = self.groups.get(group_id)
        if group is None:
            self._check_new(group_id)
            group = self._made(group_id)
        return group

    def _check_new(self, group_id: str) -> None:
        if len(group_id.encode()) > MAX_GROUP_ID_BYTES:
            raise KafkaError(
                ErrorCode.INVALID_GROUP_ID,
                f"A group id may have at most {MAX_GROUP_ID_BYTES} bytes",
            )
        if len(self.groups) + len(self.removals) >= self._settings.horolog_max_groups:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"There are {len(self.groups)} groups: horolog.max.groups allows no more",
            )

    def _made(self, group_id: str) -> Group:
        group = Group(group_id, self._clock.now_ms(), self.footprint)
        self.groups[group_id] = group
        return group

    def drop_unused(self, group: Group) -> None:
        """A group that was made for a request which came to nothing is no group."""
        if group.generation == 0 and group.modern is None and self._is_over(group):
            self.rebalances.close(group)
            del self.groups[group.group_id]

    def _is_over(self, group: Group) -> bool:
        """True when there is nothing left of it, nor anything to come with a transaction."""
        is_empty = group.is_empty and group.state is not GroupState.DEAD and not group.pending
        is_for_offsets = group.group_type is not GroupType.SHARE
        has_written = group.offsets or group.writes or group.going
        has_offsets = has_written or group.group_id in self.pending.group_ids
        return is_for_offsets and is_empty and not has_offsets

    # --- groups and offsets that go ---

    def remove(self, group: Group) -> Deferred[None]:
        """An Empty group goes, its offsets with it, or its states of partitions; settled when that
        is durable. Fails with NON_EMPTY_GROUP (68) when a member joined meanwhile.
        """
        if isinstance(group.modern, ShareGroup):
            states = partial(self.shares.forget_all, group.modern)
            return chain(states, partial(self._take_out, group))
        return self._take_out(group)

    def _take_out(self, group: Group) -> Deferred[None]:
        return self.removals.take_out(group, self._places(group))

    async def expire(self) -> None:
        """Removes expired offsets, and groups that nothing is left of (KIP-211).

        Does nothing while the clock is unverified.
        """
        if self._clock_watch.look():
            return
        now_ms = self._clock.now_ms()
        retention_ms = self._settings.offsets_retention_minutes * MINUTE_MS
        for group_id in self.removals.owed:
            await self._remove_again(group_id)
        for group in list(self.groups.values()):
            if group.state is GroupState.DEAD:
                continue
            try:
                places = expired_offsets(group, now_ms, retention_ms, self.pending.holds)
                await wait_for(self.commits.take_back(group, places))
                if self._is_over(group) and self.groups.get(group.group_id) is group:
                    await wait_for(self.remove(group))
            except Exception as error:  # noqa: BLE001 - one group must not keep the others
                event("offsets_not_expired", "warning", group=group.group_id, error=repr(error))

    async def _remove_again(self, group_id: str) -> None:
        written = self.removals.again(group_id)
        try:
            if written is not None:
                await wait_for(written)
        except Exception as error:  # noqa: BLE001 - one group must not keep the others
            event("offsets_not_expired", "warning", group=group_id, error=repr(error))

    async def follow(self) -> None:
        """Runs what is due by a clock that was moved."""
        self.deadlines.expire()

    def transaction_ended(self, index: int, producer_id: int, *, commit: bool) -> None:
        """The marker of a transaction is durable in the partition with this number."""
        ended = self.pending.take(
            producer_id, lambda each: self.topic.index_of(each) == index, commit=commit
        )
        if commit:
            for group_id, offsets in ended.items():
                if not offsets:  # all are replaced, or deleted: perhaps with their group
                    continue
                self.commits.replay(self.groups.get(group_id) or self._made(group_id), offsets)

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Offsets of topics that are gone go too."""
        gone = set(names)
        for group in self.groups.values():
            places = [place for place in self._places(group) if place[0] in gone]
            self.commits.take_back(group, places).listen(partial(_log_failure, group))
            if isinstance(group.modern, ShareGroup):
                self.shares.topics_deleted(group.modern)

    # --- start and stop ---

    def begin_load(self) -> None:
        """Before clients are let in: groups whose partition has records are not served yet."""
        self.loading.begin()

    async def load(self) -> None:
        """Reads the groups, partition by partition, on a lane."""
        await self.loading.run(self._settings.offsets_load_buffer_size)

    async def lead(self, partition: "Partition") -> None:
        """In a fleet, of a partition that was gained: its groups are read, and then served."""
        await self.loading.load(partition, self._settings.offsets_load_buffer_size)

    def lead_no_more(self, partition: "Partition") -> None:
        """In a fleet: another node has them. Nobody waits here, and nothing of them is kept."""
        self.loading.lose(partition)
        for group_id, group in list(self.groups.items()):
            if self.topic.index_of(group_id) == partition.index:
                self.rebalances.close(group)
                self.commits.drop(group)
                del self.groups[group_id]
        self.pending.drop(lambda each: self.topic.index_of(each) == partition.index)
        self.removals.lose(lambda each: self.topic.index_of(each) == partition.index)

    def stop(self) -> None:
        """Nobody waits any longer: clients look for another coordinator, or for this one later."""
        self.deadlines.close()
        for group in self.groups.values():
            self.rebalances.close(group)

    def _restore(self, found: RememberedGroups) -> None:
        for group_id, value in found.groups.items():
            restore = partial(restore_classic, value=value, rebalances=self.rebalances)
            self._restore_group(group_id, restore)
        for group_id, stored in found.consumers.items():
            restore = partial(
                restore_consumers,
                found=stored,
                consumers=self.consumers,
                footprint=self.footprint,
            )
            self._restore_group(group_id, restore)
        for group_id, share in found.shares.items():
            restore = partial(
                restore_shares, found=share, shares=self.shares, footprint=self.footprint
            )
            self._restore_group(group_id, restore)
        for group_id, streams in found.streams.items():
            restore = partial(
                restore_streams,
                found=streams,
                streams_groups=self.streams,
                footprint=self.footprint,
            )
            self._restore_group(group_id, restore)
        for group_id, offsets in found.offsets.items():
            group = self.groups.get(group_id) or self._made(group_id)
            self.commits.replay(group, offsets)
            self._drop_orphans(group)
        self.pending.absorb(found.pending)
        for group_id in found.pending.group_ids:
            if group_id not in self.groups:
                self._made(group_id)

    def _restore_group(self, group_id: str, restore: Callable[[Group], None]) -> None:
        """A group that cannot be made of its records is left out; its offsets are not."""
        group = self.groups.get(group_id) or self._made(group_id)
        if not self.loading.restore_one(group_id, lambda: restore(group)):
            group.end(self._clock.now_ms())
            del self.groups[group_id]

    def _places(self, group: Group) -> list[Place]:
        """Partitions with an offset of the group, committed or about to be."""
        written = (place for write in group.writes.values() for place in write)
        return list({*group.offsets, *group.going, *written, *self.pending.places(group.group_id)})

    def _drop_orphans(self, group: Group) -> None:
        """Offsets of topics whose deletion a crash cut short."""
        known = self._topics.image.by_id
        gone = [
            place
            for place, value in group.offsets.items()
            if value.topic_id != ZERO_UUID and value.topic_id not in known
        ]
        self.commits.take_back(group, gone).listen(partial(_log_failure, group))


def _log_failure(group: Group, _: None, error: BaseException | None) -> None:
    if error is not None:
        event("offsets_left_behind", "warning", group=group.group_id, error=error)


def _not_loaded(partition: "Partition", error: Exception) -> None:
    event("groups_not_loaded", "error", partition=partition, error=error)


def _unreadable(partition: "Partition", left_out: LeftOut) -> None:
    event(
        "group_records_unreadable", "warning",
        partition=partition, records=left_out.count, first="; ".join(left_out.named),
    )  # fmt: skip
