"""Topics for a measurement: made through the wire, filled, deleted."""

import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.apis.delete_topics import DeleteTopicsRequest
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.errors import ErrorCode
from tests.bench.wire import BenchFailed, Wire

READY_WITHIN_SECONDS = 60
_numbers = itertools.count()


def unique_name(what: str) -> str:
    """A topic name that no earlier measurement used."""
    return f"bench-{what}-{os.getpid()}-{next(_numbers)}"


def create(
    bootstrap: str, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> None:
    """Makes a topic and returns when all its partitions answer."""
    settings = [CreatableTopicConfig(name=k, value=v) for k, v in (config or {}).items()]
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1, configs=settings
    )
    with Wire(bootstrap) as wire:
        made = wire.call("CreateTopics", 5, CreateTopicsRequest(topics=[topic])).topics[0]
        if made.error_code:
            why = f"{ErrorCode(made.error_code).name} {made.error_message}"
            raise BenchFailed(f"{bootstrap} did not make {name}: {why}")
        wait_for_leaders(wire, name, partitions)


def wait_for_leaders(wire: Wire, name: str, partitions: int) -> None:
    """Kafka answers CreateTopics before it leads; a measurement must not start in between."""
    asked = [ListOffsetsPartition(partition_index=p, timestamp=-1) for p in range(partitions)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=name, partitions=asked)])
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while any(p.error_code for p in wire.call("ListOffsets", 6, request).topics[0].partitions):
        if time.monotonic() > deadline:
            raise BenchFailed(f"a partition of {name} has no leader")
        time.sleep(0.01)


def delete(bootstrap: str, name: str) -> None:
    with Wire(bootstrap) as wire:
        wire.call("DeleteTopics", 4, DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000))


@contextmanager
def topic(
    bootstrap: str, what: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> Iterator[str]:
    """A topic that lives as long as the block; its files go at once."""
    name = unique_name(what)
    create(bootstrap, name, partitions, {"file.delete.delay.ms": "0", **(config or {})})
    try:
        yield name
    finally:
        delete(bootstrap, name)
