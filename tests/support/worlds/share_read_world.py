"""Share groups that read, without network, threads or disk: members speak through the handlers.

A `Reader` is one member of one group with a session of its own. Time stands still until the test
moves it; what is written is durable at once.
"""

import asyncio
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState
from config.resources.kinds import ResourceKind
from protocol.acls import SUPPORTED, ResourceType, bits_of
from protocol.apis import share_acknowledge as ack
from protocol.apis import share_fetch as fetch
from protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.records.batch import iter_headers
from protocol.records.record import read_records
from tests.support.disk.simdisk import SimFileSystem
from tests.support.worlds.group_world import Promise
from tests.support.worlds.handler_world import World
from tests.support.worlds.transaction_world import TransactionWorld

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LOCK_MS = 30_000
GROUP = "g"


class ShareReadWorld(TransactionWorld):
    """A broker with share groups; their state topic has two partitions."""

    def __init__(self, fs: SimFileSystem | None = None, seed: int = 0, **settings: str) -> None:
        super().__init__(
            fs, seed, **{"share_coordinator_state_topic_num_partitions": "2", **settings}
        )

    def clock_watch(self, broker: SimpleNamespace) -> Any:
        """Watches the clock of this world, with holds."""
        return World.clock_watch(self, broker)

    async def again(self, fs: SimFileSystem | None = None) -> "ShareReadWorld":
        """A broker on what is left, after kill -9 unless given."""
        made = ShareReadWorld(fs or self.remains(), self.seed + 1, **self.settings)
        made.clock.advance(self.clock.now_ms() - made.clock.now_ms())
        await made.loaded()
        return made

    async def initialized(
        self, topic: str = "t", partition: int = 0, group: str = GROUP, start: int = 0
    ) -> None:
        """The state of a share partition was made, as when a member joined."""
        key = ShareKey(group, self.topic_id(topic), partition)
        await self.settled(self.broker.share_states.initialize(key, 1, start))

    def topic_id(self, topic: str = "t") -> UUID:
        found: UUID = self.broker.topics.image.topics[topic].topic_id
        return found

    async def turn(self) -> None:
        """Runs what is due at the end of this turn of the loop."""
        await self.rests()

    async def pass_ms(self, ms: int) -> None:
        """Time passes, and what is due by then happens."""
        self.clock.advance(ms)
        await self.time_moved()

    async def time_moved(self) -> None:
        """Happenings that a move of the clock makes due take place."""
        self.broker.clock_watch.look()
        self.broker.share_reads.follow_clock()
        self.broker.groups.deadlines.expire()
        await self.turn()

    async def configure(self, group: str = GROUP, **settings: str) -> None:
        """Settings of a group, with underscores for dots."""
        change = self.broker.config.prepare(
            ResourceKind.GROUP,
            group,
            {name.replace("_", "."): value for name, value in settings.items()},
        )
        self.broker.config.commit(change)

    def state(self, partition: int = 0) -> SharePartitionState:
        """State of a partition of "t" as the share coordinator remembers it."""
        found: SharePartitionState = self.broker.share_states.states[
            ShareKey(GROUP, self.topic_id(), partition)
        ]
        return found

    def only(self, *names: str) -> Any:
        """Rights on the resources of these names alone."""
        return SimpleNamespace(
            granted={},
            may=lambda _, name: name in names,
            bits=lambda _, name: bits_of(SUPPORTED[ResourceType.TOPIC]) if name in names else 0,
            may_on_any=lambda _: bool(names),
            denied=lambda *_: None,
        )

    async def delete_topic(self, name: str) -> None:
        topic = DeleteTopicState(name=name)
        answer = await self.call(DeleteTopicsRequest(topics=[topic], timeout_ms=1000), 6)
        assert answer.responses[0].error_code == 0

    async def passed(self, waiting: Promise) -> None:
        """Real time passes until there is an answer."""
        for _ in range(200):
            if waiting.answer is not None:
                return
            await asyncio.sleep(0.01)

    def state_partition(self) -> Any:
        """The partition of `__share_group_state` that remembers partition 0 of "t"."""
        topic = self.broker.share_states.topic
        index = topic.index_of(ShareKey(GROUP, self.topic_id(), 0).owner)
        return self.partition("__share_group_state", index)

    def reader(self, member: str = "m1", *places: tuple[str, int], group: str = GROUP) -> "Reader":
        return Reader(self, group, member, places or (("t", 0),))


class Reader:
    """One member's session."""

    def __init__(
        self, world: ShareReadWorld, group: str, member: str, places: tuple[tuple[str, int], ...]
    ) -> None:
        self.world, self.group, self.member, self.epoch = world, group, member, 0
        self._places = places

    def request(self, *acks: Any, wait_ms: int = 0, **how: Any) -> fetch.ShareFetchRequest:
        """A fetch with the next epoch; `acks` are (first, last, types...) of partition 0 of "t"."""
        places = self._places if self.epoch == 0 else ()
        topics = [
            fetch.ShareFetchTopic(
                topic_id=self.world.topic_id(topic),
                partitions=[
                    fetch.ShareFetchPartition(partition_index=index, acknowledgement_batches=[])
                ],
            )
            for topic, index in places
        ]
        if acks:
            batches = [ack.AcknowledgementBatch(**each) for each in _ranges(acks)]
            part = fetch.ShareFetchPartition(partition_index=0, acknowledgement_batches=batches)
            topics = [fetch.ShareFetchTopic(topic_id=self.world.topic_id(), partitions=[part])]
        fields = {
            "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, **how,
        }  # fmt: skip
        epoch = fields.pop("epoch", self.epoch)
        self.epoch = epoch + 1
        return fetch.ShareFetchRequest(
            group_id=self.group, member_id=self.member, share_session_epoch=epoch,
            max_wait_ms=wait_ms, topics=topics, forgotten_topics_data=[], **fields,
        )  # fmt: skip

    def begin(self, *acks: Any, version: int = 2, **how: Any) -> Promise:
        """A fetch whose answer may come later."""
        return Promise(self.world, self.request(*acks, **how), version)

    async def fetch(self, *acks: Any, version: int = 2, **how: Any) -> Any:
        """The whole answer to one fetch."""
        return await self.world.call(self.request(*acks, **how), version)

    async def got(self, *acks: Any, **how: Any) -> list[tuple[int, int, int]]:
        """Ranges that the member got of partition 0 of "t": first, last, deliveries."""
        return acquired(await self.fetch(*acks, **how))

    async def acknowledge(self, *acks: Any, **how: Any) -> Any:
        """The whole answer to one ShareAcknowledge."""
        epoch = how.pop("epoch", self.epoch)
        self.epoch = epoch + 1
        batches = [ack.AcknowledgementBatch(**each) for each in _ranges(acks)]
        part = ack.ShareAcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = ack.ShareAcknowledgeTopic(topic_id=self.world.topic_id(), partitions=[part])
        request = ack.ShareAcknowledgeRequest(
            group_id=self.group, member_id=self.member, share_session_epoch=epoch,
            topics=[topic] if acks else [], **how,
        )  # fmt: skip
        return await self.world.call(request, 2)

    async def code(self, *acks: Any, **how: Any) -> int:
        """The code of partition 0 of "t" for an acknowledgement."""
        answer = await self.acknowledge(*acks, **how)
        assert answer.error_code == 0, answer
        found: int = answer.responses[0].partitions[0].error_code
        return found


def _ranges(acks: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [
        {"first_offset": first, "last_offset": last, "acknowledge_types": types}
        for first, last, *types in acks
    ]


def acquired(answer: Any) -> list[tuple[int, int, int]]:
    """The ranges of an answer with at most one partition and without error."""
    assert answer.error_code == 0, answer
    parts = [each for topic in answer.responses for each in topic.partitions]
    assert [each.error_code for each in parts] in ([], [0]), answer
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for part in parts
        for each in part.acquired_records
    ]


def values_of(answer: Any) -> list[bytes]:
    """The values of the records in an answer, whole batches."""
    parts = [each for topic in answer.responses for each in topic.partitions]
    return [
        record.value or b""
        for part in parts
        if part.records
        for position, header in iter_headers(memoryview(part.records))
        for record in read_records(memoryview(part.records)[position:])
        if not header.is_control
    ]


async def share_read_world(**settings: str) -> ShareReadWorld:
    """A broker with topic "t" of two partitions, from whose start group "g" reads the first."""
    world = ShareReadWorld(None, 0, **settings)
    await world.make_topic(partitions=2)
    await world.initialized()
    return world
