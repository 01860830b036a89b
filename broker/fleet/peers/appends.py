"""Batches of this node's own for partitions that other nodes lead, by Produce."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.partitions.partition import ACKS_ALL, Partition
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID

TIMEOUT_MS = 5000


class PeerAppends:
    """Appends at leaders. Used from the event loop."""

    def __init__(self, ask: Callable[[int, Any], Awaitable[Any]]) -> None:
        """Nobody was asked."""
        self._ask = ask

    async def append(self, partition: Partition, batch: bytes) -> None:
        """Returns when the batch is durable.

        KafkaError: it is not there, or nobody knows (NETWORK_EXCEPTION, 13).
        """
        elsewhere = partition.leader_elsewhere
        if elsewhere is None or elsewhere.node_id == NOBODY:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Nobody leads {partition}")
        try:
            answer = await self._ask(elsewhere.node_id, _request(partition, batch))
        except PeerUnreached as error:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, str(error)) from error
        except PeerSilent as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        [data] = answer.responses[0].partition_responses
        if data.error_code:
            is_known = data.error_code in set(ErrorCode)
            code = ErrorCode(data.error_code) if is_known else ErrorCode.UNKNOWN_SERVER_ERROR
            raise KafkaError(code, f"node {elsewhere.node_id}: {data.error_message or code.name}")


def _request(partition: Partition, batch: bytes) -> ProduceRequest:
    topic_id: UUID = partition.log.topic_id or ZERO_UUID
    data = PartitionProduceData(index=partition.index, records=batch)
    topic = TopicProduceData(name=partition.topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(
        transactional_id=None, acks=ACKS_ALL, timeout_ms=TIMEOUT_MS, topic_data=[topic]
    )
