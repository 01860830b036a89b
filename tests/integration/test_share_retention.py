"""`horolog.share.retention.hold` on a running broker: what stays, what says so, for how long."""

from typing import Any
from uuid import UUID

from protocol.apis import (
    incremental_alter_configs,
    share_acknowledge,
    share_fetch,
    share_group_heartbeat,
)
from tests.integration.test_admin_api import START, World, world
from tests.support.worlds.handler_world import altered

__all__ = ["world"]  # a fixture

GROUP_KIND, SET = 32, 0
ACCEPT = 1


async def configure(world: World, *settings: tuple[str, int, str]) -> None:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[altered(GROUP_KIND, "g", settings)]
    )
    (answer,) = (await world.client.call(request, 1)).responses
    assert answer.error_code == 0, answer


async def joined(world: World) -> UUID:
    request = share_group_heartbeat.ShareGroupHeartbeatRequest(
        group_id="g", member_id="a", member_epoch=0, subscribed_topic_names=["t"]
    )
    answer = await world.client.call(request, 1)
    (part,) = answer.assignment.topic_partitions
    found: UUID = part.topic_id
    return found


async def fetched(world: World, topic_id: UUID, epoch: int) -> list[tuple[int, int]]:
    part = share_fetch.ShareFetchPartition(partition_index=0, acknowledgement_batches=[])
    topics = [share_fetch.ShareFetchTopic(topic_id=topic_id, partitions=[part])]
    request = share_fetch.ShareFetchRequest(
        group_id="g", member_id="a", share_session_epoch=epoch, max_wait_ms=0, min_bytes=1,
        max_bytes=1 << 20, max_records=1, batch_size=1, topics=topics, forgotten_topics_data=[],
    )  # fmt: skip
    answer = await world.client.call(request, 2)
    return [
        (each.first_offset, each.last_offset)
        for topic in answer.responses
        for found in topic.partitions
        for each in found.acquired_records
    ]


async def accept(world: World, topic_id: UUID, epoch: int, offset: int) -> None:
    batch = share_acknowledge.AcknowledgementBatch(
        first_offset=offset, last_offset=offset, acknowledge_types=[ACCEPT]
    )
    part = share_acknowledge.ShareAcknowledgePartition(
        partition_index=0, acknowledgement_batches=[batch]
    )
    topic = share_acknowledge.ShareAcknowledgeTopic(topic_id=topic_id, partitions=[part])
    request = share_acknowledge.ShareAcknowledgeRequest(
        group_id="g", member_id="a", share_session_epoch=epoch, topics=[topic]
    )
    answer = await world.client.call(request, 2)
    assert answer.responses[0].partitions[0].error_code == 0


async def test_segments_stay_for_a_queue_and_say_so(world: World) -> None:
    await world.make_topic("t", retention_ms=1000)
    await configure(
        world,
        ("horolog.share.retention.hold", SET, "true"),
        ("horolog.share.delay.max.ms", SET, str(24 * 3_600_000)),
        ("share.auto.offset.reset", SET, "earliest"),
    )
    for _ in range(3):
        await world.produce("t", START)
    topic_id = await joined(world)
    epoch, got = 0, list[tuple[int, int]]()
    while not got:  # its start is chosen, and what it is made of is read, with the first ones
        got, epoch = await fetched(world, topic_id, epoch), epoch + 1
    assert got == [(0, 0)]
    await accept(world, topic_id, epoch, 0)
    await world.post("/api/clock/step", by="1h")
    segments = await world.segments("t")
    assert [each["base_offset"] for each in segments] == [1, 2]
    told: Any = segments[0]["retention"]
    assert told["reason"] == "undelivered"
    assert {"how": "wait", "for": "the share groups that have not finished it"} in told["frees"]
    (partition,) = (await world.get("/api/timeline", topic="t"))["partitions"]
    assert partition["retention"]["stays"] == 1
    assert partition["retention"]["stays_because"].startswith("undelivered")
    goes = (await world.get("/api/topics/t/retention/preview"))["goes"]
    assert goes["segments"] == 0
    await world.post("/api/clock/step", by="24h")
    assert [each["base_offset"] for each in await world.segments("t")] == [3]
