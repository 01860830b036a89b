"""Requests to a broker with a tier, beyond `ManyTopics`: transactions, and single fetches."""

import time
from collections.abc import Callable
from operator import attrgetter
from typing import Any
from uuid import UUID

from protocol.apis import add_partitions_to_txn, delete_topics, end_txn, fetch, init_producer_id
from protocol.apis.find_coordinator import FindCoordinatorRequest
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from tests.support.histories.history_requests import ManyTopics
from tests.support.tier_sides.scenes import End, Write

WITHIN_SECONDS = 60
TRANSACTION = 1
NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}


class TierTalk(ManyTopics):
    """One connection to a broker."""

    def __init__(self, bootstrap: str, ids: dict[str, UUID]) -> None:
        """Connects."""
        super().__init__(bootstrap, ids)
        self._producers: dict[str, Any] = {}
        self._sequences: dict[str, int] = {}

    def write(self, topic: str, write: Write, records: list[Any]) -> int:
        """Appends one batch; the offset that comes behind it."""
        if not write.producer:
            batch = bytes(build_batch(records, codec=write.codec))
            answer = self.produce({topic: batch}, 9)[topic]
        else:
            answer = self._write_in_transaction(topic, write.producer, records)
        assert answer.error_code == 0, (topic, write, answer)
        return int(answer.base_offset) + len(records)

    def _write_in_transaction(self, topic: str, name: str, records: list[Any]) -> Any:
        producer = self._producer(name)
        self._join(topic, name, producer)
        first = self._sequences.get(name, 0)
        batch = build_batch(
            records, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch,
            base_sequence=first, transactional=True,
        )  # fmt: skip
        self._sequences[name] = first + len(records)
        return self.produce({topic: bytes(batch)}, 9, transactional_id=name)[topic]

    def _producer(self, name: str) -> Any:
        if name not in self._producers:
            asks = FindCoordinatorRequest(key=name, key_type=TRANSACTION)
            self._until_known(lambda: self._client.call(asks, 3))
            begins = init_producer_id.InitProducerIdRequest(
                transactional_id=name, transaction_timeout_ms=WITHIN_SECONDS * 1000
            )
            self._producers[name] = self._until_known(lambda: self._client.call(begins, 3))
        return self._producers[name]

    def _join(self, topic: str, name: str, producer: Any) -> None:
        topics = [add_partitions_to_txn.AddPartitionsToTxnTopic(name=topic, partitions=[0])]
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=topics,
        )

        def joined() -> Any:
            answer = self._client.call(request, 3).results_by_topic_v3_and_below[0]
            return answer.results_by_partition[0]

        self._until_known(joined, lambda answer: answer.partition_error_code)

    def end(self, topic: str, end: End) -> int:
        """Ends the transaction; the offset behind its marker, once that is written."""
        before = self.latest(topic)
        producer = self._producer(end.producer)
        request = end_txn.EndTxnRequest(
            transactional_id=end.producer, producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch, committed=end.is_commit,
        )  # fmt: skip
        self._until_known(lambda: self._client.call(request, 3))
        until(lambda: self.latest(topic) > before, f"a marker of {end.producer}")
        return before + 1

    def latest(self, topic: str) -> int:
        """End of the log."""
        return int(self.list_offsets({topic: -1}, 5)[topic].offset)

    def read(
        self, wanted: list[tuple[str, int, int]], *, isolation: int = 0, max_bytes: int = 1 << 30
    ) -> list[Any]:
        """One fetch of topics with offsets and limits, in that order; the partitions' answers."""
        topics = [
            fetch.FetchTopic(
                topic=topic,
                partitions=[
                    fetch.FetchPartition(
                        partition=0, fetch_offset=offset, partition_max_bytes=limit
                    )
                ],
            )
            for topic, offset, limit in wanted
        ]
        request = fetch.FetchRequest(
            max_wait_ms=0, min_bytes=0, topics=topics, isolation_level=isolation,
            max_bytes=max_bytes,
        )  # fmt: skip
        found = {each.topic: each for each in self._client.call(request, 12).responses}
        return [found[topic].partitions[0] for topic, _, _ in wanted]

    def delete(self, topic: str) -> int:
        """Deletes a topic; the error code."""
        request = delete_topics.DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000)
        return int(self._client.call(request, 4).responses[0].error_code)

    def _until_known(
        self, ask: Callable[[], Any], code_of: Callable[[Any], int] = attrgetter("error_code")
    ) -> Any:
        """The answer, as soon as it is no error that a client asks again after."""
        deadline = time.monotonic() + WITHIN_SECONDS
        while code_of(answer := ask()) in NOT_YET:
            assert time.monotonic() < deadline, answer
            time.sleep(0.05)
        assert code_of(answer) == 0, answer
        return answer


def until(holds: Callable[[], bool], what: str) -> None:
    """Waits for it."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
