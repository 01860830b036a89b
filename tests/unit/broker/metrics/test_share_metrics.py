"""Metrics of share groups, after a queue was read."""

from broker.metrics.share import KAFKA_SHARE_METRICS, SHARE_METRICS, ShareView
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
