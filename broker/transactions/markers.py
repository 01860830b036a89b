"""Writes the markers that end a transaction in its partitions.

A marker is written as durably as acks=all asks, and each partition takes it in its turn among the
other writes. A partition that is gone needs none. Used from the event loop only.
"""

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.partitions.partition import ACKS_ALL, Partition
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.topics.names import CONSUMER_OFFSETS
from broker.transactions.participants import Ending
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import KafkaError
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from storage.segment.log_snapshot import AppendResult
from storage.validation.internal_batch import own_batch

if TYPE_CHECKING:
    from broker.groups.coordinator import GroupCoordinator
    from broker.partitions.fetch_waiters import FetchWaiters
    from broker.topics.topic_catalog import TopicCatalog
    from storage.env import Clock

AT_ONCE = 50  # partitions, until others may run


class Markers:
    """Ends transactions in partitions."""

    def __init__(
        self,
        topics: "TopicCatalog",
        waiters: "FetchWaiters",
        clock: "Clock",
        groups: "GroupCoordinator",
    ) -> None:
        """Nothing is written. `groups` and `waiters` are notified of the end."""
        self._topics = topics
        self._waiters = waiters
        self._clock = clock
        self._groups = groups

    async def write(self, ending: Ending, places: Iterable[Place]) -> dict[Place, KafkaError]:
        """Marks all partitions; the answer are those where that failed."""
        pending: list[tuple[Place, Deferred[AppendResult]]] = []
        failed: dict[Place, KafkaError] = {}
        for number, place in enumerate(sorted(places), 1):
            partition = self._topics.image.partition(*place)
            if partition is not None:
                pending.append((place, self._append(ending, partition)))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        self._waiters.answer_woken()
        for place, appended in pending:
            error = await _error_of(appended)
            if error is not None:
                failed[place] = error
        return failed

    def _append(self, ending: Ending, partition: Partition) -> Deferred[AppendResult]:
        """Settled when the marker is durable, and counts."""
        answer: Deferred[AppendResult] = Deferred()

        def done(result: AppendResult | None, error: BaseException | None) -> None:
            if result is None:
                assert error is not None
                answer.fail(error)
                return
            self._counts(ending, partition)
            answer.resolve(result)

        now_ms = self._clock.now_ms()
        kind = COMMIT if ending.commit else ABORT
        marker = build_marker(
            Marker(kind, ending.coordinator_epoch),
            ending.producer_id,
            ending.producer_epoch,
            now_ms,
        )
        try:
            outcome = partition.writer.append_own(own_batch(marker, now_ms), ACKS_ALL)
        except KafkaError as error:
            done(None, error)
            return answer
        if isinstance(outcome, Deferred):
            outcome.listen(done)
        else:
            done(outcome, None)
        return answer

    def _counts(self, ending: Ending, partition: Partition) -> None:
        """Offsets that were committed in the transaction count, or are forgotten, from now on."""
        if partition.topic == CONSUMER_OFFSETS:
            self._groups.transaction_ended(
                partition.index, ending.producer_id, commit=ending.commit
            )


class LocalParticipants:
    """The `Participants` of a broker alone: all are led here, and need not hear that they join."""

    def __init__(self, markers: Markers) -> None:
        """Nothing is ended."""
        self._markers = markers

    async def join(self, claim: ProducerClaim, places: Iterable[Place]) -> None:
        """As the port has it."""

    async def close(self, transactional_id: str, ending: "Ending") -> None:
        """As the port has it: who writes asks the coordinator, which knows."""

    async def end(
        self,
        transactional_id: str,  # noqa: ARG002 - the call of a port
        ending: Ending,
        places: Iterable[Place],
    ) -> Mapping[Place, KafkaError]:
        """As the port has it."""
        return await self._markers.write(ending, places)


async def _error_of(appended: Deferred[AppendResult]) -> KafkaError | None:
    try:
        await wait_for(appended)
    except KafkaError as error:
        event("marker_not_written", "warning", error=error)
        return error
    return None
