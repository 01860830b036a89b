"""Commits of offsets: who may commit, what is stored, when it counts.

An offset counts, and its commit is answered, when its record is durable. Rules: Kafka's
`OffsetMetadataManager` and `ClassicGroup.validateOffsetCommit`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from broker.groups.classic.group import Group, GroupState, Place
from broker.groups.classic.members import MemberClaim
from broker.groups.classic.rebalance import Rebalances
from broker.groups.consumer.commits import check_commit
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.pending import PendingOffsets, bytes_of
from broker.groups.records.classic import OffsetCommitValue, offset_key, offset_value
from broker.groups.requests import CommitAsked
from broker.groups.row_writer import GroupLog, in_batches
from broker.groups.streams.commits import check_streams_commit
from broker.groups.streams.group import StreamsGroup
from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import after_success, all_of
from broker.runtime.memory_account import ENTRY_BYTES
from broker.state.state_topic import Row
from protocol.errors import ErrorCode, KafkaError

NO_GENERATION = -1

Growth = tuple[int, int]
"""Offsets in new places, and bytes that all take more; the latter may be negative."""


def offset_row(group_id: str, place: Place, value: OffsetCommitValue) -> Row:
    """The record of a committed offset."""
    return offset_key(group_id, *place), offset_value(value)


class Commits:
    """Stores and forgets offsets of groups. Used from the event loop only."""

    def __init__(self, rebalances: Rebalances, log: GroupLog, pending: PendingOffsets) -> None:
        """Nothing is committed. `pending` are those of transactions."""
        self._rebalances = rebalances
        self._log = log
        self._pending = pending
        self.stored: int = 0
        """Offsets that all groups have."""
        self.stored_bytes: int = 0
        """About what they take in memory, those on their way to the disk with them."""

    def check(self, group: Group, claim: MemberClaim, asked: CommitAsked) -> None:
        """Checks that this client may commit for the group now; a commit keeps a member alive.
        Raises KafkaError.
        """
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_is_of_consumers()
        if isinstance(group.modern, ConsumerGroup):
            check_commit(group.modern, claim, asked)
            return
        if isinstance(group.modern, StreamsGroup):
            check_streams_commit(group.modern, claim, asked)
            return
        if claim.generation <= NO_GENERATION and group.state is GroupState.EMPTY:
            return
        member = group.claimed_member(claim)
        if group.state is GroupState.EMPTY:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is GroupState.COMPLETING:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
        self._rebalances.alive(member)

    def store(
        self,
        group: Group,
        offsets: Mapping[Place, OffsetCommitValue],
        size_bytes: int = 0,
        rows: Sequence[Row] | None = None,
    ) -> Deferred[None]:
        """Settled when all are durable, or none is; they take `size_bytes` more on their way.

        `rows` are their records, where they were made before.
        """
        answer: Deferred[None] = Deferred()
        if rows is None:
            rows = [offset_row(group.group_id, *each) for each in offsets.items()]
        on_the_way = dict(offsets)
        self.stored_bytes += size_bytes
        number = group.begin_write(on_the_way)

        def written(_: None, error: BaseException | None) -> None:
            group.writes.pop(number)
            self.stored_bytes -= size_bytes
            if error is not None:
                answer.fail(error)
                return
            self._pending.supersede(group.group_id, on_the_way)
            if group.state is not GroupState.DEAD:
                self.replay(group, on_the_way)
            answer.resolve(None)

        self._log.write(group.group_id, rows).listen(written)
        return answer

    def replay(self, group: Group, offsets: Mapping[Place, OffsetCommitValue]) -> None:
        """These are what the log says now."""
        count, size_bytes = self.growth(group, offsets)
        group.offsets.update(offsets)
        self._taken_back(group, offsets)
        self.stored += count
        if size_bytes:
            self._grow(group, size_bytes)

    def growth(self, group: Group, offsets: Mapping[Place, OffsetCommitValue]) -> Growth:
        """Growth in offsets and bytes against what is stored in their places."""
        known, count, size_bytes = group.offsets, 0, 0
        for place, value in offsets.items():
            before = known.get(place)
            if before is None:
                count += 1
                size_bytes += bytes_of(value)
            elif before.metadata != value.metadata:
                size_bytes += bytes_of(value) - bytes_of(before)
        return count, size_bytes

    def _grow(self, group: Group, size_bytes: int) -> None:
        group.offset_bytes += size_bytes
        self.stored_bytes += size_bytes

    def forget(self, group: Group, places: Sequence[Place]) -> None:
        """These are not in the log any more."""
        for place in places:
            gone = group.offsets.pop(place, None)
            if gone is not None:
                self.stored -= 1
                self._grow(group, -bytes_of(gone))

    def drop(self, group: Group) -> None:
        """Forgets a group without its log: it is another node's, or gone."""
        self.forget(group, list(group.offsets))
        self._taken_back(group, list(group.going))

    def take_back(self, group: Group, places: Sequence[Place]) -> Deferred[None]:
        """Forgets offsets at once; settled when that is durable.

        What could not be written is written again when these are taken back again.
        """
        known = [each for each in places if self._is_known(group, each)]
        self.forget(group, known)
        self._pending.supersede(group.group_id, known)
        for write in group.writes.values():
            for place in known:
                write.pop(place, None)
        if not known:
            return resolved(None)
        return self._write_deletions(group, known)

    def _write_deletions(self, group: Group, places: Sequence[Place]) -> Deferred[None]:
        """Writes that offsets are gone, in as many batches as that takes."""
        known = {offset_key(group.group_id, *place): place for place in places}
        self.stored_bytes += ENTRY_BYTES * sum(each not in group.going for each in places)
        number = group.begin_deletion(places)
        parts = []
        rows: list[Row] = [(key, None) for key in known]
        for some in in_batches(rows, self._log.batch_bytes // 2):
            gone = [known[key] for key, _ in some]
            done = partial(self._taken_back, group, gone, number)
            parts.append(after_success(self._log.write(group.group_id, some), done))
        return all_of(parts)

    def _taken_back(self, group: Group, places: Iterable[Place], number: int | None = None) -> None:
        """The log says so now (by the write with this number), or something later."""
        going = group.going
        for place in places if going else ():
            if place in going and number in {None, going[place]}:
                del going[place]
                self.stored_bytes -= ENTRY_BYTES

    def owed_rows(self, group: Group) -> list[Row]:
        """Records of offsets that were taken back, as far as they are not known to be durable."""
        return [(offset_key(group.group_id, *place), None) for place in group.going]

    def _is_known(self, group: Group, place: Place) -> bool:
        is_written = place in group.offsets or place in group.going or group.is_writing(place)
        return is_written or self._pending.holds(group.group_id, place)
