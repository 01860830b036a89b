"""Writes records to topics: an idempotent producer over a plain connection to each leader.

Every batch has a sequence number, and is sent again under the same one until the broker has it or
says why it will not: a lost answer never doubles a record. What a task of Spark's writes twice,
because it was run twice, is there twice: Spark's writers promise no more.
"""

import time
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.broker_client import BrokerClient, check, connect
from pipeline.errors import BadOption, BrokerRefused, NothingThere
from pipeline.sinks.topic_batches import Batch, batches_of, key_hashes
from pipeline.sinks.topic_columns import Outgoing, outgoing
from protocol.apis.init_producer_id import InitProducerIdRequest
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode
from protocol.records.compression import Codec

MOST_BATCH_BYTES = 900_000  # below the broker's usual max.message.bytes
MOST_VERSION = 12  # the last one with topics by name
TIMEOUT_MS = 30_000
PATIENCE_SECONDS = 120
"""How long a batch is tried, as the delivery time-out of Kafka's producers."""
RETRY_SECONDS = 0.2
_SEQUENCES = 1 << 31

_Key = tuple[str, int]


class TopicWriter:
    """Takes frames' record batches. Not for several threads at once."""

    def __init__(
        self, bootstrap: str, topic: str = "", codec: Codec = Codec.NONE, *, acks: int = -1,
        batch_bytes: int = MOST_BATCH_BYTES,
    ) -> None:  # fmt: skip
        """`topic` empty: the column says it. BrokerRefused."""
        self._bootstrap = bootstrap
        self._topic = topic
        self._codec = codec
        self._acks = acks
        self._batch_bytes = batch_bytes
        self._clients: dict[str, BrokerClient] = {}
        self._leaders: dict[str, list[str]] = {}
        self._queues: dict[_Key, deque[Batch]] = defaultdict(deque)
        self._sequences: dict[_Key, int] = defaultdict(int)
        self._turns: dict[str, int] = defaultdict(int)
        self._producer = (-1, -1)
        self.written = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Send the records; the broker has them all when it returns. BrokerRefused, BadOption."""
        records = outgoing(batch, time.time_ns() // 1_000_000)
        for key, part in self._by_partition(records):
            self._queues[key] += batches_of(part, self._codec, self._batch_bytes)
        self._send_all()

    def close(self) -> None:
        """Let the connections go."""
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    # --- where records go ---

    def _by_partition(self, records: Outgoing) -> Iterator[tuple[_Key, Outgoing]]:
        for topic, rows in self._by_topic(records):
            partitions = self._partitions(topic, records, rows)
            order = np.argsort(partitions, kind="stable")
            found, begins = np.unique(partitions[order], return_index=True)
            ends = (*begins[1:], len(order))
            for partition, begin, end in zip(found, begins, ends, strict=True):
                wanted = order[begin:end] if rows is None else rows[order[begin:end]]
                yield (topic, int(partition)), _taken(records, wanted)

    def _by_topic(self, records: Outgoing) -> Iterator[tuple[str, Any]]:
        if self._topic:
            yield self._topic, None
            return
        assert records.topic is not None
        names = records.topic.dictionary_encode()
        if names.null_count:
            raise BadOption("a record has no topic, and the option topic says none")
        codes = names.indices.to_numpy(zero_copy_only=False)
        for index, name in enumerate(names.dictionary.to_pylist()):
            yield name, np.flatnonzero(codes == index)

    def _partitions(self, topic: str, records: Outgoing, rows: Any) -> Any:
        """Of each record: as the column says, else by its key, else by turns."""
        count = len(self._leaders_of(topic))
        keys = records.key if rows is None else records.key.take(pa.array(rows))
        hashes = key_hashes(keys)
        self._turns[topic] += 1
        found = np.where(hashes < 0, self._turns[topic] % count, hashes % count)
        if records.partition is not None:
            told = records.partition if rows is None else records.partition.take(pa.array(rows))
            given = told.fill_null(-1).to_numpy(zero_copy_only=False)
            if len(given) and given.max() >= count:
                raise BadOption(
                    f"{topic} has {count} partitions, and a record asks for {given.max()}"
                )
            found = np.where(given < 0, found, given)
        return found

    def _leaders_of(self, topic: str) -> list[str]:
        if topic not in self._leaders:
            with connect(self._bootstrap) as client:
                wanted = [MetadataRequestTopic(name=topic)]
                answer = client.call(
                    MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
                )
            found = answer.topics[0]
            if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise NothingThere(
                    f"the topic {topic!r} is not on {self._bootstrap}: make it first"
                )
            check(found.error_code, f"{self._bootstrap}, the topic {topic}")
            brokers = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
            leaders = sorted(
                (p.partition_index, brokers.get(p.leader_id, "")) for p in found.partitions
            )
            self._leaders[topic] = [address for _, address in leaders]
        return self._leaders[topic]

    # --- sending ---

    def _send_all(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(self._queues.values()):
            try:
                is_done = self._send_once()
            except BrokerRefused as error:
                self._forget(error, deadline)
                is_done = False
            if is_done:
                deadline = time.monotonic() + PATIENCE_SECONDS
            elif time.monotonic() > deadline:
                raise BrokerRefused(f"nothing was taken for {PATIENCE_SECONDS} seconds")

    def _send_once(self) -> bool:
        """One request to each leader, the next batch of each partition in it; whether all went."""
        by_leader: dict[str, list[_Key]] = defaultdict(list)
        for key, queue in self._queues.items():
            if queue:
                by_leader[self._leaders_of(key[0])[key[1]]].append(key)
        under_way = [
            (
                self._client(leader),
                keys,
                self._client(leader).send(self._request(keys), at_most=MOST_VERSION),
            )
            for leader, keys in by_leader.items()
        ]
        is_done = True
        for client, _, sent in under_way:
            for topic in client.receive(*sent).responses:
                for answer in topic.partition_responses:
                    is_done &= self._settled(client, (topic.name, answer.index), answer)
        return is_done

    def _request(self, keys: list[_Key]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = defaultdict(list)
        for key in keys:
            data = self._queues[key][0].sealed(*self._producer, self._sequences[key])
            topics[key[0]].append(PartitionProduceData(index=key[1], records=data))
        return ProduceRequest(
            transactional_id=None,
            acks=self._acks,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(name=n, partition_data=d) for n, d in topics.items()],
        )

    def _settled(self, client: BrokerClient, key: _Key, answer: Any) -> bool:
        """Whether the broker has the batch now; BrokerRefused when it never will."""
        code = answer.error_code
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            batch = self._queues[key].popleft()
            self._sequences[key] = (self._sequences[key] + batch.record_count) % _SEQUENCES
            self.written += batch.record_count
            return True
        if ErrorCode(code).retriable:
            self._leaders.pop(key[0], None)
            time.sleep(RETRY_SECONDS)
            return False
        raise RecordsRefused(
            f"{client.address} refuses records of {key[0]}-{key[1]}: {_why(answer)}"
        )

    def _client(self, leader: str) -> BrokerClient:
        if leader not in self._clients:
            self._clients[leader] = BrokerClient(leader)
        if self._producer[0] < 0:
            answer = self._clients[leader].call(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)
            )
            check(answer.error_code, f"{leader}, InitProducerId")
            self._producer = answer.producer_id, answer.producer_epoch
        return self._clients[leader]

    def _forget(self, error: BrokerRefused, deadline: float) -> None:
        """A connection failed: try again with new ones, unless that has been tried for long."""
        if isinstance(error, RecordsRefused) or time.monotonic() > deadline:
            raise error
        self.close()
        self._leaders.clear()
        time.sleep(RETRY_SECONDS)


class RecordsRefused(BrokerRefused):
    """The broker will never take these records."""


def _leaders_in(answer: Any, topic: Any) -> list[str]:
    """The address of each partition's leader, in the order of partitions."""
    brokers = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
    leaders = []
    for each in sorted(topic.partitions, key=lambda each: int(each.partition_index)):
        if each.leader_id not in brokers:
            raise BrokerRefused(f"{topic.name}-{each.partition_index} has no leader now")
        leaders.append(brokers[each.leader_id])
    return leaders


def _taken(records: Outgoing, rows: Any) -> Outgoing:
    index = pa.array(rows)
    return Outgoing(*(None if each is None else each.take(index) for each in records))


def _why(answer: Any) -> str:
    name = ErrorCode(answer.error_code).name
    told = [each.batch_index_error_message for each in answer.record_errors or ()]
    details = "; ".join(filter(None, (answer.error_message, *told[:3])))
    return f"{name}{': ' if details else ''}{details}"
