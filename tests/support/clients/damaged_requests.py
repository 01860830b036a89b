"""Requests that are pointed at things which exist, and then damaged: seeded, for any message."""

import random
import uuid
from collections.abc import Sequence
from typing import Any

from broker.topics.topic_catalog import TopicCatalog
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from tests.support.worlds.handler_world import BATCH_TIME

SETTLED = 0.9
TOPICS = ["t", "t", "compacted", "unknown", "1"]
SETTING_NAMES = ["retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes", "bogus"]
SETTING_VALUES = ["1", "-1", "100000", "compact", "", "9" * 30, "true", "é"]
EPOCHS = [-1, -1, 0, 1]
INDEXES = [0, 0, 1, 2, -1]
OFFSETS = [0, 1, 2, 3, -1, 2**63 - 1]
NUMBERS: dict[str, Sequence[Any]] = {
    "acks": [-1, -1, 1, 0, 2],
    "replica_id": [-1],
    "session_id": [0],
    "session_epoch": [0, -1, 1],
    "current_leader_epoch": EPOCHS,
    "last_fetched_epoch": EPOCHS,
    "leader_epoch": EPOCHS,
    "timeout_ms": [-1, 0, 1000],
    "max_wait_ms": [-1, 0, 1],
    "timestamp": [-1, -2, -3, 0, BATCH_TIME, 2**63 - 1, -(2**63)],
    "fetch_offset": OFFSETS,
    "offset": OFFSETS,
    "index": INDEXES,
    "partition": INDEXES,
    "partition_index": INDEXES,
    "num_partitions": [1, 2, -1, 0, 201],
    "replication_factor": [1, 1, -1, 3],
    "count": [1, 2, 3, 4, 201],
    "resource_type": [2, 2, 4, 8],
    "endpoint_type": [1],
}


def settle_in(value: Any, choice: random.Random, topics: TopicCatalog) -> None:
    """Points most names, ids, numbers and records of a request to things that exist."""
    for name in getattr(value, "__fields__", {}):
        inner = getattr(value, name)
        if isinstance(inner, list):
            for each in inner:
                settle_in(each, choice, topics)
        elif hasattr(inner, "__fields__"):
            settle_in(inner, choice, topics)
        elif choice.random() < SETTLED and (options := _options(value, name, inner, topics)):
            setattr(value, name, choice.choice(options))
    if hasattr(value, "records") and choice.random() < SETTLED:
        value.records = some_records(choice)


def _options(value: Any, name: str, inner: Any, topics: TopicCatalog) -> Sequence[Any]:
    if isinstance(inner, uuid.UUID):
        return [topic.topic_id for topic in topics.image.topics.values()]
    if "Config" in type(value).__name__:
        return {"name": SETTING_NAMES, "value": SETTING_VALUES}.get(name, ())
    if name.endswith("transactional_id"):
        return ["x", None if value.__fields__[name].nullable_from == 0 else ""]
    if isinstance(inner, str) and name in {"name", "topic", "resource_name", "topic_name"}:
        return TOPICS
    return NUMBERS.get(name, ())


def some_records(choice: random.Random) -> bytes | None:
    rows = [(BATCH_TIME + index, choice.choice([None, b"k"]), b"v") for index in range(3)]
    batch = build_batch(rows, codec=choice.choice(list(Codec)), **choice.choice(SEQUENCES))
    return choice.choice([None, b"", bytes(batch), bytes(batch), bytes(batch) * 2])


SEQUENCES: list[dict[str, Any]] = [
    {},
    {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0},
    {"producer_id": 7, "producer_epoch": 1, "base_sequence": 0},
    {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3},
]


def damaged(body: bytes, choice: random.Random) -> bytes:
    """Flips a few bytes, cuts, or leaves it as it is."""
    data = bytearray(body)
    kind = choice.random()
    if kind < 0.5 and data:
        for _ in range(choice.choice([1, 1, 1, 2, 5])):
            value = choice.choice([0, 1, 0x7F, 0x80, 0xFF, choice.randrange(256)])
            data[choice.randrange(len(data))] = value
    elif kind < 0.65:
        del data[choice.randrange(len(data) + 1) :]
    elif kind < 0.7:
        data += choice.randbytes(5)
    return bytes(data)
