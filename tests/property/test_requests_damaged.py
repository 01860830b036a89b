"""Valid requests of every API and version, damaged at random, against a whole broker.

Nothing but an answer, silence (acks=0) or a closed connection may come of it: an error that nobody
expected is a bug, and the broker counts those. The broker lives on a simulated disk, keeps what
earlier examples did to it, and must still serve at the end.
"""

import asyncio
import os
import random
import uuid
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.context import Peer
from broker.dispatcher import Dispatcher
from broker.limits import CloseConnection
from broker.routes import routes
from protocol.api import Api
from protocol.apis.metadata import MetadataRequest
from protocol.codec import encode_bytes
from protocol.headers import request_header_bytes
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.registry import apis
from tests.support.handler_world import BATCH_TIME, World
from tests.support.message_strategies import messages

PEER = Peer(1, "10.0.0.9", 50000, "PLAINTEXT", "127.0.0.1", 9092)
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
EXAMPLES = int(os.environ.get("HOROLOG_FUZZ_EXAMPLES", "4"))
ANSWER_SECONDS = 5


def every_version() -> list[Any]:
    return [
        pytest.param(api, version, id=f"{api.name}-{version}")
        for api in apis().values()
        for version in range(api.min_version, api.max_version + 1)
    ]


class Attacked:
    """A broker in this loop and the one entry for frames."""

    def __init__(self) -> None:
        self.world = World(horolog_max_partitions="200")
        self.broker = self.world.broker
        loop = asyncio.get_running_loop()
        self.dispatcher = Dispatcher(routes(), self.broker, self.broker.probes, loop)

    async def take(self, frame: bytes) -> None:
        """One frame, to the end of what becomes of it."""
        try:
            answer = self.dispatcher.dispatch(memoryview(bytearray(frame)), PEER)
        except CloseConnection:
            return
        if answer is None or isinstance(answer, list):
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.listen(lambda parts, error: done.done() or done.set_result(None))  # type: ignore[func-returns-value]
        for _ in range(100):
            if done.done():
                return
            self.world.commit.sync()
            await asyncio.sleep(0)
        answer.abandon()  # a fetch that waits for data

    async def check(self) -> None:
        assert not self.broker.probes.crashes, dict(self.broker.probes.crashes)
        assert (await self.world.call(MetadataRequest(topics=None), 9)).brokers


def settle_in(value: Any, choice: random.Random, world: World) -> None:
    """Points most names, ids, numbers and records of a request to things that exist."""
    for name in getattr(value, "__fields__", {}):
        inner = getattr(value, name)
        if isinstance(inner, list):
            for each in inner:
                settle_in(each, choice, world)
        elif hasattr(inner, "__fields__"):
            settle_in(inner, choice, world)
        elif choice.random() < SETTLED and (options := _options(value, name, inner, world)):
            setattr(value, name, choice.choice(options))
    if hasattr(value, "records") and choice.random() < SETTLED:
        value.records = some_records(choice)


def _options(value: Any, name: str, inner: Any, world: World) -> Sequence[Any]:
    if isinstance(inner, uuid.UUID):
        return [topic.topic_id for topic in world.broker.catalog.image.topics.values()]
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


SEQUENCES: list[dict[str, int]] = [
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


@pytest.mark.parametrize(("api", "version"), every_version())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_request_is_answered_or_ends_its_connection(
    api: Api, version: int, data: st.DataObject
) -> None:
    requests = [data.draw(messages(api.request, version)) for _ in range(3)]
    choice = data.draw(st.randoms(use_true_random=False))
    header = request_header_bytes(api, version, 5, "fuzz")

    async def attack() -> None:
        attacked = Attacked()
        await attacked.world.make_topic("t", 2)
        await attacked.world.make_topic("compacted", 1, cleanup_policy="compact")
        await attacked.world.produce(b"a", b"b")
        for request in requests:
            settle_in(request, choice, attacked.world)
            body = encode_bytes(request, version)
            await attacked.take(damaged(header + body, choice))
            await attacked.take(header + damaged(body, choice))
            await attacked.take(header + body)
        await attacked.check()

    asyncio.run(asyncio.wait_for(attack(), ANSWER_SECONDS * 10))
