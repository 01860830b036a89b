"""While the wall clock is in doubt no task takes anything by time; then goes what is due."""

import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from broker.daemon.app import Broker
from broker.security.delegation.tokens import Wish
from broker.tasks.clock_holds import READERS, TASKS, Held
from protocol.apis import (
    init_producer_id,
    offset_commit,
    produce,
)
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.records.builder import build_batch
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, frozen_at, running_broker
from tests.unit.broker.guards.test_clock_guard import DAY, HOLD

ROOT = Path(__file__).parents[2]
START = 1_790_000_000_000
READS_WALL_TIME = re.compile(r"now_ms\(\)|clock\.now_ms\b|steps\.now_ms\b")
TELLS_ONLY = ("broker/http/", "broker/metrics/", "broker/cli")
SETTINGS = {
    "horolog.audit.topic": "audit",
    "horolog.security.audit.topic": "security",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "auto.create.topics.enable": "true",
    "log.cleanup.policy": "delete",
    "log.roll.ms": "1000000",
    "log.retention.hours": "24",
    "delegation.token.secret.key": "a secret of tests",
    "horolog.client.telemetry.enable": "true",
}
LEFT = ("offsets", "transactional_ids", "producers", "retention", "rolling", "tokens")


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    held = frozen_at(START)
    async with running_broker(tmp_path, SETTINGS, held_clock=held) as running:
        yield running


def test_every_module_that_reads_wall_time_says_what_for() -> None:
    reading = {
        name
        for folder in ("broker", "storage")
        for path in (ROOT / folder).rglob("*.py")
        if not (name := str(path.relative_to(ROOT))).startswith(TELLS_ONLY)
        and READS_WALL_TIME.search(path.read_text())
    }
    assert reading == set(READERS)


async def test_every_task_says_what_it_does_in_a_hold(broker: Broker) -> None:
    beside = {"disk", "scrubber", "tier", "orphans"}  # a tier: where one is set up
    beside |= {"share_starts", "ends"}  # in a fleet
    assert {*broker.services.tasks.names, *beside} == set(TASKS)


async def produce_one(client: AsyncWireClient, producer_id: int) -> None:
    batch = build_batch(
        [(START, b"k", b"v")], producer_id=producer_id, producer_epoch=0, base_sequence=0
    )
    data = produce.PartitionProduceData(index=0, records=batch)
    topics = [produce.TopicProduceData(name="t", partition_data=[data])]
    await client.call(produce.ProduceRequest(acks=1, timeout_ms=9000, topic_data=topics), 9)


async def fill(client: AsyncWireClient) -> None:
    """Something that goes by time, for each way of going."""
    topics = [MetadataRequestTopic(name="t")]
    await client.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 9)
    one = init_producer_id.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60000)
    owner = await client.call(one, 2)
    assert owner.error_code == 0
    fresh = await client.call(init_producer_id.InitProducerIdRequest(), 2)
    await produce_one(client, fresh.producer_id)
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])
    request = offset_commit.OffsetCommitRequest(group_id="g", topics=[topic])
    assert (await client.call(request, 8)).topics[0].partitions[0].error_code == 0


def counts(broker: Broker) -> dict[str, Callable[[], int]]:
    """What there is that time may take, or end."""

    def log_start() -> int:
        partition = broker.services.topics.image.partition("t", 0)
        assert partition is not None
        return -partition.log.snapshot.log_start_offset

    def producers() -> int:
        partition = broker.services.topics.image.partition("t", 0)
        assert partition is not None
        return len(partition.log.producers)

    return {
        "offsets": lambda: broker.services.groups.commits.stored,
        "transactional_ids": lambda: len(broker.services.transactions.ids),
        "producers": producers,
        "retention": log_start,
        "tokens": lambda: len(broker.services.tokens.all()),
        "rolling": lambda: -broker.services.rolling.rolled_segments,
    }


async def run_all(broker: Broker) -> None:
    """Each task runs, due or not; twice, since what one ends another may take."""
    for _ in range(2):
        await broker.services.tasks.settle(TASKS)


async def test_no_task_takes_anything_by_time_in_a_hold_and_each_does_after_it(
    broker: Broker,
) -> None:
    async with client_of(broker) as client:
        await fill(client)
        await broker.services.tokens.create(Wish("alice", "alice", (), -1))
        there = {name: count() for name, count in counts(broker).items()}
        assert broker.services.held_time is not None
        clock = broker.services.held_time.clock
        clock.set_wall(START + 40 * DAY)
        await run_all(broker)
        assert {name: count() for name, count in counts(broker).items()} == there
        clock.advance(HOLD - 1)
        await run_all(broker)
        assert {name: count() for name, count in counts(broker).items()} == there
        clock.advance(2)  # the parts of a sum of seconds may be less than the sum
        await run_all(broker)
        left = {name for name, count in counts(broker).items() if count() >= there[name]}
        assert left == set()


def test_what_waits_is_tried_here() -> None:
    # the cleaner: test_clock_steps and test_cleaner_tasks; the tier: test_tiered_log, test_sweep
    tried = {*LEFT, "cleaner", "tier", "orphans"}
    assert {name for name, row in TASKS.items() if row.held is not Held.GOES_ON} == tried
    assert all(row.why for row in TASKS.values())
