"""Metrics of share groups, after a queue was read."""

from broker.metrics.share import KAFKA_SHARE_METRICS, SHARE_METRICS, SHARE_SPREADS, ShareView
from tests.support.worlds.share_read_world import (
    ACCEPT,
    LOCK_MS,
    REJECT,
    RELEASE,
    RENEW,
    ShareReadWorld,
    share_read_world,
)


def view_of(world: ShareReadWorld) -> ShareView:
    broker = world.broker
    return ShareView(
        broker.share_reads, broker.share_states, broker.topics, world.clock, broker.redrive
    )


def read(world: ShareReadWorld) -> dict[str, float]:
    return {
        "/".join((metric.name.removeprefix("horolog_share_"), *labels)): number
        for metric in (*SHARE_METRICS, *KAFKA_SHARE_METRICS)
        for labels, number in metric.read(view_of(world))
    }


async def test_what_members_do_is_counted() -> None:
    world = await share_read_world()
    await world.produce(*(b"%d" % number for number in range(6)))
    reader = world.reader()
    await reader.fetch()
    found = read(world)
    assert (found["sessions"], found["partitions"], found["records_in_flight"]) == (1, 1, 6)
    assert found["records_delivered"] == 6
    assert await reader.code((0, 1, RENEW), is_renew_ack=True) == 0
    assert await reader.code((0, 3, ACCEPT, ACCEPT, RELEASE, REJECT)) == 0
    await world.pass_ms(LOCK_MS)
    found = read(world)
    counts = {
        kind: found[f"records_acknowledged/{kind}"] for kind in ("accept", "release", "renew")
    }
    assert counts == {"accept": 2, "release": 1, "renew": 2}
    name = "kafka_server_sharegroupmetrics_recordacknowledgements"
    assert (found[f"{name}/Reject"], found[f"{name}/Gap"]) == (1, 0)
    assert found["locks_ended"] == 1
    assert found["records_in_flight"] == 4, "from the first that is not finished"
    assert found["kafka_server_sharesessioncache_sharepartitionscount"] == 1


async def test_sessions_that_end_with_their_connection_are_counted() -> None:
    world = await share_read_world()
    await world.reader().fetch()
    reads = world.broker.share_reads
    reads.connection_lost(reads.sessions.find("g", "m1").connection_id)
    found = read(world)
    assert (found["sessions"], found["sessions_lost"], found["partitions"]) == (0, 1, 0)


async def test_records_that_wait_for_their_time_are_counted() -> None:
    world = await share_read_world()
    await world.configure(horolog_share_delay="record-time")
    now = world.clock.now_ms()
    await world.produce(b"0", b"1", b"2", at=now, step=1000)
    reader = world.reader()
    assert await reader.got() == [(0, 0, 1)]
    assert read(world)["waiting"] == 2
    await world.pass_ms(1007)
    assert await reader.got() == [(1, 1, 1)]
    await world.pass_ms(993)
    assert await reader.got() == [(2, 2, 1)]
    assert read(world)["waiting"] == 0
    (spread,) = SHARE_SPREADS
    ((_, counts),) = spread.read(view_of(world))
    assert dict(zip(spread.bounds, counts, strict=False))[0.001] == 2
    assert dict(zip(spread.bounds, counts, strict=False))[0.01] == 1


async def test_the_age_of_the_oldest_unfinished_record_by_both_clocks() -> None:
    world = await share_read_world()
    name = "oldest_seconds/g/t/0"
    assert (read(world)[f"{name}/record"], read(world)[f"{name}/arrival"]) == (0, 0)
    now = world.clock.now_ms()
    await world.produce(b"0", at=now - 60_000)
    await world.pass_ms(3000)
    await world.produce(b"1", at=now - 90_000)
    await world.pass_ms(1000)
    found = read(world)
    assert (found[f"{name}/record"], found[f"{name}/arrival"]) == (94, 4), "the second one's time"
    reader = world.reader()
    await reader.fetch()
    assert await reader.code((1, 1, ACCEPT)) == 0
    found = read(world)
    assert (found[f"{name}/record"], found[f"{name}/arrival"]) == (64, 4), "it is finished"
    assert await reader.code((0, 0, ACCEPT)) == 0
    await reader.acknowledge(epoch=-1)
    assert world.broker.share_reads.partitions.count == 0
    assert read(world)[f"{name}/record"] == 0, "nobody reads, and all is finished"
    await world.produce(b"2", at=world.clock.now_ms())
    await world.pass_ms(5000)
    assert read(world)[f"{name}/record"] == 5
