"""Commits of offsets inside of transactions: permission, and the wait for the end.

Such an offset is stored as part of the producer's transaction, and counts when the marker of that
is durable. A client before KIP-447 names no member, and differs from its predecessors by the
producer's epoch alone. Rules: Kafka's `OffsetMetadataManager.commitTransactionalOffset`.
"""

from collections.abc import Mapping

from broker.groups.classic.group import Group, GroupState, Place
from broker.groups.classic.members import MemberClaim
from broker.groups.classic.rebalance import Rebalances
from broker.groups.commits import offset_row
from broker.groups.consumer.commits import check_commit
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.pending import PendingOffsets
from broker.groups.records.classic import OffsetCommitValue
from broker.groups.requests import EPOCHS_SINCE_VERSION, CommitAsked
from broker.groups.streams.commits import check_streams_commit
from broker.groups.streams.group import StreamsGroup
from broker.runtime.deferred import Deferred
from broker.state.state_topic import StateTopic, TransactionalProducer
from protocol.errors import ErrorCode, KafkaError

NO_GENERATION = -1


class TransactionalCommits:
    """Stores offsets of transactions. Used from the event loop only."""

    def __init__(self, rebalances: Rebalances, topic: StateTopic, pending: PendingOffsets) -> None:
        """Nothing is committed."""
        self._rebalances = rebalances
        self._topic = topic
        self._pending = pending

    def check(
        self, group: Group, claim: MemberClaim, offsets: Mapping[Place, OffsetCommitValue]
    ) -> None:
        """Checks that this client may commit for the group now; unlike others, in a rebalance too.
        Raises KafkaError.
        """
        if group.state is GroupState.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        group.check_is_of_consumers()
        if isinstance(group.modern, ConsumerGroup | StreamsGroup):
            self._check_modern(group.modern, claim, offsets)
            return
        is_named = bool(claim.member_id) or claim.instance_id is not None
        if claim.generation <= NO_GENERATION and (not is_named or group.state is GroupState.EMPTY):
            return
        self._rebalances.alive(group.claimed_member(claim))

    def _check_modern(
        self,
        modern: ConsumerGroup | StreamsGroup,
        claim: MemberClaim,
        offsets: Mapping[Place, OffsetCommitValue],
    ) -> None:
        """Producers know of generations only: a stale epoch is an illegal one."""
        if claim.generation <= NO_GENERATION and not claim.member_id:
            return
        places = [(value.topic_id, place[1]) for place, value in offsets.items()]
        asked = CommitAsked(EPOCHS_SINCE_VERSION, places, offsets)
        try:
            if isinstance(modern, ConsumerGroup):
                check_commit(modern, claim, asked)
            else:
                check_streams_commit(modern, claim, asked)
        except KafkaError as error:
            if error.code != ErrorCode.STALE_MEMBER_EPOCH:
                raise
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, error.message) from error

    def store(
        self,
        group: Group,
        offsets: Mapping[Place, OffsetCommitValue],
        transaction: TransactionalProducer,
    ) -> Deferred[None]:
        """Settled when all are durable, and wait for the end of the transaction; or none does."""
        answer: Deferred[None] = Deferred()
        rows = [offset_row(group.group_id, *each) for each in offsets.items()]
        on_the_way = dict(offsets)
        number = group.begin_write(on_the_way)

        def written(_: None, error: BaseException | None) -> None:
            group.writes.pop(number)
            if error is not None:
                answer.fail(error)
                return
            self._pending.add(transaction.producer_id, group.group_id, on_the_way)
            answer.resolve(None)

        self._topic.write(group.group_id, rows, transaction).listen(written)
        return answer
