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


def read(world: ShareReadWorld) -> dict[str, float]:
    view = ShareView(world.broker.share_reads)
    return {
        "/".join((metric.name.removeprefix("horolog_share_"), *labels)): number
        for metric in (*SHARE_METRICS, *KAFKA_SHARE_METRICS)
        for labels, number in metric.read(view)
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
    ((_, counts),) = spread.read(ShareView(world.broker.share_reads))
    assert dict(zip(spread.bounds, counts, strict=False))[0.001] == 2
    assert dict(zip(spread.bounds, counts, strict=False))[0.01] == 1
