"""A compacted topic in a broker of the test's own process, by a clock that only steps forward."""

import asyncio
from collections.abc import Mapping

from broker.daemon.app import Broker
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.records.builder import build_batch
from storage.log.log import Log
from storage.posix import real_env
from tests.support.clients.wire import AsyncWireClient

HOUR_S = 3600
PATIENT = {"connections.max.idle.ms": str(10**14)}
COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "1"}


class SteppedClock:
    """The real time, so many seconds ahead."""

    def __init__(self) -> None:
        self.real = real_env().clock
        self.ahead = 0.0

    def now_ms(self) -> int:
        return self.real.now_ms() + int(self.ahead * 1000)

    def monotonic(self) -> float:
        return self.real.monotonic() + self.ahead


async def pass_time(broker: Broker, clock: SteppedClock, seconds: float) -> None:
    """All that is due then runs, in order."""
    clock.ahead += seconds
    async with asyncio.timeout(30):
        await broker.services.tasks.settle()


async def make_topic(client: AsyncWireClient, settings: Mapping[str, str], name: str = "t") -> None:
    """A topic of one partition."""
    configs = [CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    response = await client.call(CreateTopicsRequest(topics=[topic]), 7)
    assert response.topics[0].error_code == 0, response


async def produce(
    client: AsyncWireClient, at: int, *records: tuple[bytes, bytes | None], name: str = "t"
) -> None:
    """One batch of these keys and values, all of one time."""
    batch = build_batch([(at, key, value) for key, value in records])
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name=name, partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=9000, topic_data=[topic])
    response = await client.call(request, 9)
    assert response.responses[0].partition_responses[0].error_code == 0, response


def log_of(broker: Broker, name: str = "t") -> Log:
    """The topic's only log."""
    return broker.services.topics.image.topics[name].partitions[0].log
