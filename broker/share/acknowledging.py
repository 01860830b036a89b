"""Acknowledgements of a request: for each partition all of its ranges, or an error."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import after, gather
from broker.share.acknowledge import RENEW, AcknowledgedRange, segments_of
from broker.share.served_partitions import ServedPartitions
from broker.share.sessions import SharedPlace, ShareSession
from broker.share.state.key import ShareKey
from broker.topics.topic_catalog import TopicCatalog
from protocol.errors import ErrorCode, KafkaError

R_co = TypeVar("R_co", bound=AcknowledgedRange, covariant=True)


class AcknowledgedPartition(Protocol[R_co]):
    """A partition of a request."""

    partition_index: int

    @property
    def acknowledgement_batches(self) -> Sequence[R_co]:
        """Its ranges."""


class AcknowledgedTopic(Protocol[R_co]):
    """A topic of a request."""

    topic_id: UUID

    @property
    def partitions(self) -> Sequence[AcknowledgedPartition[R_co]]:
        """Its partitions."""


class AcknowledgeResult(NamedTuple):
    """Result of one partition."""

    place: SharedPlace
    error: KafkaError | None = None


class Acknowledging:
    """Takes in what members say of records."""

    def __init__(self, topics: TopicCatalog, partitions: ServedPartitions) -> None:
        """Nothing was said."""
        self._topics = topics
        self._partitions = partitions

    def acknowledge(
        self,
        session: ShareSession,
        topics: Iterable[AcknowledgedTopic[AcknowledgedRange]],
        may_read: Callable[[str], bool],
        *,
        is_renewal: bool,
    ) -> Deferred[list[AcknowledgeResult]]:
        """Results of the partitions that have ranges, once all of them are durable."""
        results = [
            self._one(session, (topic.topic_id, each.partition_index), each, may_read, is_renewal)
            for topic in topics
            for each in topic.partitions
            if each.acknowledgement_batches
        ]
        gathered = gather(results, list[AcknowledgeResult])
        return gathered if isinstance(gathered, Deferred) else resolved(gathered)

    def _one(
        self,
        session: ShareSession,
        place: SharedPlace,
        said: AcknowledgedPartition[AcknowledgedRange],
        may_read: Callable[[str], bool],
        is_renewal: bool,
    ) -> AcknowledgeResult | Deferred[AcknowledgeResult]:
        try:
            partition = self._topics.image.require_by_id(*place)
            if not may_read(partition.topic):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # noqa: TRY301 - answered
            partition.check_surely_leads()
            stored = self._take_in(session, place, said, is_renewal=is_renewal)
        except KafkaError as error:
            return AcknowledgeResult(place, error)
        done = partial(_done, place)
        return after(stored, done, partial(AcknowledgeResult, place))

    def _take_in(
        self,
        session: ShareSession,
        place: SharedPlace,
        said: AcknowledgedPartition[AcknowledgedRange],
        *,
        is_renewal: bool,
    ) -> Deferred[None]:
        segments = segments_of(said.acknowledgement_batches, may_renew=is_renewal)
        served = self._partitions.find(ShareKey(session.group, *place))
        if served is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        renews = any(each.type == RENEW for each in segments)
        if renews and not served.settings.share_renew_acknowledge_enable:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "Renewal is disabled for the group.")
        return served.acknowledge(session.member, segments)


def _done(place: SharedPlace, _: None) -> AcknowledgeResult:
    return AcknowledgeResult(place)
