"""A consumer with a session sees what one with full requests sees, whatever happens meanwhile."""

import asyncio
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from protocol.records.batch import iter_headers
from tests.support.worlds.handler_world import World

PARTITIONS = 4

steps = st.one_of(
    st.tuples(st.just("produce"), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("follow"), st.integers(0, PARTITIONS)),
    st.tuples(st.just("forget"), st.integers(0, PARTITIONS)),
    st.tuples(st.just("trim"), st.integers(0, PARTITIONS - 1)),
    st.tuples(st.just("fetch"), st.sampled_from([0, 90, 10_000])),
    st.tuples(st.just("lose"), st.just(0)),
)


class Consumer:
    """Follows partitions through one session and keeps what the answers add up to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.offsets: dict[int, int] = {}
        self.known: dict[int, tuple[int, int, int]] = {}
        self.changed: set[int] = set()
        self.forgotten: set[int] = set()
        self.session_id, self.epoch = 0, 0

    def follow(self, index: int) -> None:
        self.offsets.setdefault(index, 0)
        self.changed.add(index)
        self.forgotten.discard(index)

    def forget(self, index: int) -> None:
        if self.offsets.pop(index, None) is not None:
            self.changed.discard(index)
            self.forgotten.add(index)

    async def fetch(self, max_bytes: int) -> None:
        full = self.epoch == 0
        asked = sorted(self.offsets if full else self.changed)
        response = await self.world.call(
            FetchRequest(
                max_wait_ms=0,
                max_bytes=max_bytes,
                session_id=self.session_id,
                session_epoch=self.epoch,
                topics=_topics({index: self.offsets[index] for index in asked}),
                forgotten_topics_data=[]
                if full or not self.forgotten
                else [ForgottenTopic(topic="t", partitions=sorted(self.forgotten))],
            ),
            11,
        )
        assert response.error_code == 0
        for index in self.forgotten:  # whoever is followed again before that was never left
            self.known.pop(index, None)
        self.changed.clear()
        self.forgotten.clear()
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        for index, answer in _answers(response).items():
            self.known[index] = _facts(answer)
            if answer.records:
                *_, (_, last) = iter_headers(memoryview(answer.records))
                self.offsets[index] = last.last_offset + 1
                self.changed.add(index)
            elif answer.error_code == 1:
                self.offsets[index] = answer_start(self.world, index)
                self.changed.add(index)

    async def told_in_full(self) -> dict[int, tuple[int, int, int]]:
        """What a request without a session hears now."""
        request = FetchRequest(max_wait_ms=0, max_bytes=0, topics=_topics(self.offsets))
        return {
            index: _facts(answer)
            for index, answer in _answers(await self.world.call(request, 11)).items()
        }


def answer_start(world: World, index: int) -> int:
    return world.partition("t", index).log.snapshot.log_start_offset


def _topics(offsets: dict[int, int]) -> list[FetchTopic]:
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in sorted(offsets.items())
    ]
    return [FetchTopic(topic="t", partitions=partitions)] if partitions else []


def _answers(response: Any) -> dict[int, Any]:
    return {each.partition_index: each for topic in response.responses for each in topic.partitions}


def _facts(answer: Any) -> tuple[int, int, int]:
    return answer.error_code, answer.high_watermark, answer.log_start_offset


async def play(script: list[tuple[str, int]]) -> None:
    world = World()
    await world.make_topic(partitions=PARTITIONS)
    consumer = Consumer(world)
    for verb, number in script:
        if verb == "produce":
            await world.produce(b"x" * 20, partition=number)
        elif verb == "trim":
            log = world.partition("t", number).log
            log.delete_records(log.snapshot.high_watermark)
        elif verb == "lose":
            world.broker.fetch_sessions.close(consumer.session_id)
            consumer.session_id, consumer.epoch = 0, 0
        elif verb == "fetch":
            await consumer.fetch(number)
        else:
            getattr(consumer, verb)(number)
    for _ in range(40):
        await consumer.fetch(1 << 20)
    assert consumer.known == await consumer.told_in_full()
    for index, offset in consumer.offsets.items():
        if index < PARTITIONS:
            assert offset == world.partition("t", index).log.snapshot.high_watermark


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(steps, max_size=30))
@example([("follow", 0), ("fetch", 90), ("forget", 0), ("follow", 0)])
def test_a_session_adds_up_to_the_whole(script: list[tuple[str, int]]) -> None:
    asyncio.run(play(script))
