"""The newest times of logs in the scrape: known without a look at a file, or not shown."""

from broker.metrics.partitions import PARTITION_METRICS
from storage.log.lifecycle import learn_times
from tests.support.worlds.handler_world import BATCH_TIME, World

MAX_RECORD = "horolog_log_max_record_timestamp_seconds"
LAST_ARRIVAL = "horolog_log_last_arrival_timestamp_seconds"


def shown(world: World, name: str) -> dict[tuple[str, ...], float]:
    metric = next(metric for metric in PARTITION_METRICS if metric.name == name)
    return dict(metric.read(world.broker))  # type: ignore[arg-type]


async def test_both_times_of_what_was_appended_are_shown(world: World) -> None:
    await world.make_topic(partitions=2)
    await world.produce(b"a", at=BATCH_TIME - 5000)
    world.clock.advance(2000)
    await world.produce(b"a", at=BATCH_TIME - 9000)
    assert shown(world, MAX_RECORD) == {("t", "0"): (BATCH_TIME - 5000) / 1000}
    assert shown(world, LAST_ARRIVAL) == {("t", "0"): (BATCH_TIME + 2000) / 1000}


async def test_a_segment_that_was_just_begun_does_not_hide_the_one_before(world: World) -> None:
    await world.make_topic()
    await world.produce(b"a")
    world.partition().log.roll()
    assert shown(world, LAST_ARRIVAL) == {("t", "0"): BATCH_TIME / 1000}


async def test_after_a_start_both_are_shown_once_retention_has_looked(world: World) -> None:
    await world.make_topic()
    await world.produce(b"a", at=BATCH_TIME - 5000)
    world.partition().log.close()
    again = world.restarted()
    assert shown(again, LAST_ARRIVAL) == {}
    learn_times(again.partition().log, 10)
    assert shown(again, MAX_RECORD) == {("t", "0"): (BATCH_TIME - 5000) / 1000}
    assert shown(again, LAST_ARRIVAL) == {("t", "0"): BATCH_TIME / 1000}


async def test_records_without_a_time_have_none_to_show(world: World) -> None:
    await world.make_topic()
    await world.produce(b"a", at=-1, step=0)
    assert shown(world, MAX_RECORD) == {}
    assert shown(world, LAST_ARRIVAL) == {("t", "0"): BATCH_TIME / 1000}
