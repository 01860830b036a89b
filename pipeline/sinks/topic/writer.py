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
import pyarrow.compute as pc

from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from pipeline.broker_client import BrokerClient
from pipeline.errors import BadOption, BrokerRefused, NotAllowed
from pipeline.leaders import Leaders
from pipeline.sinks.topic.batches import Batch, batches_of, key_hashes
from pipeline.sinks.topic.columns import Outgoing, outgoing
from pipeline.sinks.topic.times import refuse_stamping
from pipeline.sinks.topic.turns import Turns
from protocol.apis.init_producer_id import InitProducerIdRequest
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode
from protocol.records.compression import Codec

MOST_BATCH_BYTES = 900_000  # below the broker's usual max.message.bytes
MOST_VERSION = 12  # the last one with topics by name
TIMEOUT_MS = 30_000
PATIENCE_SECONDS = 120
"""Time for which a batch is retried, as the delivery time-out of Kafka's producers."""
RETRY_SECONDS = 0.2
_SEQUENCES = 1 << 31

_Key = tuple[str, int]


class TopicWriter:
    """Takes frames' record batches. Not for several threads at once."""

    def __init__(
        self, bootstrap: str, topic: str = "", codec: Codec = Codec.NONE, *, acks: int = -1,
        batch_bytes: int = MOST_BATCH_BYTES, keeps_times: bool = False,
        security: ClientSecurity = IN_THE_CLEAR,
    ) -> None:  # fmt: skip
        """`topic` empty: the column says it. `keeps_times`: topics that stamp are refused."""
        self._bootstrap, self._security = bootstrap, security
        self._topic = topic
        self._codec = codec
        self._acks = acks
        self._batch_bytes = batch_bytes
        self._clients: dict[str, BrokerClient] = {}
        self._leaders = Leaders(bootstrap, security)
        self._queues: dict[_Key, deque[Batch]] = defaultdict(deque)
        self._sequences: dict[_Key, int] = defaultdict(int)
        self._leaderless: list[_Key] = []
        self._turns = Turns()
        self._keeps_times = keeps_times
        self._checked: set[str] = set()
        self._producer = (-1, -1)
        self.written = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Send the records; the broker has them all when it returns.

        BrokerRefused, BadOption, NothingThere.
        """
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
            if self._keeps_times and topic not in self._checked:
                refuse_stamping(self._bootstrap, topic, self._security)
                self._checked.add(topic)
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
        leaders = self._leaders.of(topic)
        count = len(leaders)
        hashes = key_hashes(_of_rows(records.key, rows))
        found = hashes % count
        given = np.full(len(found), -1)
        if records.partition is not None:
            stated = _of_rows(records.partition, rows)
            given = stated.fill_null(-1).to_numpy(zero_copy_only=False)
            if len(given) and given.max() >= count:
                raise BadOption(
                    f"{topic} has {count} partitions, and a record asks for {given.max()}"
                )
            found = np.where(given < 0, found, given)
        free = np.flatnonzero((hashes < 0) & (given < 0))
        if len(free):
            sizes = pc.binary_length(_of_rows(records.value, rows)).fill_null(0)
            each = sizes.to_numpy(zero_copy_only=False)[free]
            found[free] = self._turns.partitions(topic, leaders, each.astype(np.int64))
        return found

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
                reasons = [
                    f"{topic}-{index} has no leader" for topic, index in self._leaderless[:3]
                ]
                text = "; ".join(reasons) or "nothing was taken"
                raise BrokerRefused(f"{text}, for {PATIENCE_SECONDS} seconds")

    def _send_once(self) -> bool:
        """One request to each leader, the next batch of each partition in it; whether all went."""
        by_leader = self._waiting()
        self._leaderless = by_leader.pop("", [])
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
        for topic in {topic for topic, _ in self._leaderless}:
            self._leaders.forget(topic)
        if self._leaderless:
            time.sleep(RETRY_SECONDS)
        return is_done and not self._leaderless

    def _waiting(self) -> dict[str, list[_Key]]:
        """The partitions that have a batch to be sent, by their leaders; empty: there is none."""
        by_leader: dict[str, list[_Key]] = defaultdict(list)
        for key, queue in self._queues.items():
            if queue:
                by_leader[self._leaders.of_partition(*key)].append(key)
        return by_leader

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
        """True when the broker has the batch; BrokerRefused when it never will."""
        code = answer.error_code
        if code in {ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER}:
            batch = self._queues[key].popleft()
            self._sequences[key] = (self._sequences[key] + batch.record_count) % _SEQUENCES
            self.written += batch.record_count
            return True
        if code == ErrorCode.MESSAGE_TOO_LARGE and self._queues[key][0].record_count > 1:
            halves = tuple(self._queues[key].popleft().halves())
            self._queues[key].extendleft(reversed(halves))
            return False
        client.check_rights(code, f"{key[0]}-{key[1]}", f"WRITE on the topic {key[0]}")
        if ErrorCode(code).retriable:
            self._leaders.forget(key[0])
            time.sleep(RETRY_SECONDS)
            return False
        raise RecordsRefused(
            f"{client.address} refuses records of {key[0]}-{key[1]}: {_why(answer)}"
        )

    def _client(self, leader: str) -> BrokerClient:
        if leader not in self._clients:
            self._clients[leader] = BrokerClient(leader, self._security)
        if self._producer[0] < 0:
            answer = self._clients[leader].call(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)
            )
            self._clients[leader].check(
                answer.error_code, "InitProducerId", "WRITE on a topic, or IDEMPOTENT_WRITE"
            )
            self._producer = answer.producer_id, answer.producer_epoch
        return self._clients[leader]

    def _forget(self, error: BrokerRefused, deadline: float) -> None:
        """A connection failed: try again with new ones, unless that has been tried for long."""
        if isinstance(error, RecordsRefused | NotAllowed) or time.monotonic() > deadline:
            raise error
        self.close()
        self._leaders.forget()
        time.sleep(RETRY_SECONDS)


class RecordsRefused(BrokerRefused):
    """The broker will never take these records."""


def _of_rows(column: pa.Array, rows: Any) -> pa.Array:
    return column if rows is None else column.take(pa.array(rows))


def _taken(records: Outgoing, rows: Any) -> Outgoing:
    index = pa.array(rows)
    return Outgoing(*(None if each is None else each.take(index) for each in records))


def _why(answer: Any) -> str:
    name = ErrorCode(answer.error_code).name
    reasons = [each.batch_index_error_message for each in answer.record_errors or ()]
    details = "; ".join(filter(None, (answer.error_message, *reasons[:3])))
    return f"{name}{': ' if details else ''}{details}"
