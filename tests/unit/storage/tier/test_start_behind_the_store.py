"""A directory without a segment, whose log goes on where the store's part of it ends."""

import pytest

from protocol.errors import ErrorCode, KafkaError
from storage.files.layout import SNAPSHOT, segment_name
from storage.recovery.loading import LoadHints
from tests.support.records.logs import CLEAN, LOG_PATH, UNCLEAN, open_log
from tests.support.tier.tier_world import TierWorld


def wiped(is_clean: bool) -> TierWorld:
    """A log of which the store has ten records of one producer; no segment is in the directory."""
    world = TierWorld()
    world.write_closed(10)
    world.copy_all()
    world.drop_all()
    assert world.log.snapshot.local_start_offset == 10
    world.log.close()
    world.env.fs.remove(f"{LOG_PATH}/{segment_name(10, '.log')}")
    world.open(is_clean=is_clean)
    return world


@pytest.mark.parametrize("is_clean", [True, False])
def test_producers_go_on_where_they_were(is_clean: bool) -> None:
    world = wiped(is_clean)
    assert world.write(9).duplicate
    with pytest.raises(KafkaError) as refused:
        world.write(11)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert world.write(10).base_offset == 10
    world.reopen()
    assert world.write(10).duplicate
    assert [each.offset for each in world.records()] == list(range(11))


@pytest.mark.parametrize("is_clean", [True, False])
def test_producers_are_known_at_a_second_start_without_a_record(is_clean: bool) -> None:
    world = wiped(is_clean)
    world.open(is_clean=is_clean)
    assert world.write(9).duplicate


def test_a_damaged_snapshot_is_not_believed() -> None:
    world = TierWorld()
    path = f"{LOG_PATH}/{segment_name(10, SNAPSHOT)}"
    world.log.close()
    world.env.fs.remove(f"{LOG_PATH}/{segment_name(0, '.log')}")
    world.env.fs.write_atomically(path, b"no snapshot")
    log = open_log(world.env, UNCLEAN._replace(remote_end=10), **world.settings)
    assert log.snapshot.log_end_offset == 10
    assert not len(log.producers)
    assert not world.env.fs.exists(path)


@pytest.mark.parametrize("hints", [CLEAN, UNCLEAN])
def test_without_a_store_no_snapshot_outlives_the_records(hints: LoadHints) -> None:
    world = wiped(is_clean=True)
    world.log.close()
    for name in ("horolog-remote", segment_name(10, ".log")):
        world.env.fs.remove(f"{LOG_PATH}/{name}")
    log = open_log(world.env, hints._replace(start_offset=10), **world.settings)
    assert not len(log.producers)
    assert log.snapshot.log_start_offset == 10
