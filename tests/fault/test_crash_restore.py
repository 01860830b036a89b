"""The power goes at every call of a restore: no broker starts on a half of one, and begun again it
comes to the same end."""

import pytest

from storage.env import Env
from storage.errors import DiskError, StorageError
from storage.files.layout import META_PROPERTIES_FILE, RESTORING_FILE
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash
from tests.support.records.logs import append, make_durable
from tests.support.tier.restore_world import (
    LOG_DIR,
    clock_of,
    fresh_env,
    restore_into,
    started,
    take_picture,
)
from tests.support.tier.tier_world import KEYS, TierWorld

T0 = 1_700_000_000_000


def copied() -> TierWorld:
    world = TierWorld(segment_bytes=700)
    for number in range(12):
        append(world.log, T0 + number, value=bytes([number]) * 200)
        clock_of(world).advance(50)
    world.log.roll()
    make_durable(world.log)
    world.copy_all()
    take_picture(world)
    return world


def offsets(env: Env, world: TierWorld) -> list[int]:
    """Those that a broker's directory serves; none while the restore is not at its end."""
    manager = started(env, world.store, segment_bytes=700)
    world.log = manager.logs[KEYS.topic, KEYS.partition]
    found = [each.offset for each in world.records()]
    assert world.log.corruption is None
    manager.release()
    return found


@pytest.mark.parametrize("at_once", [False, True])
def test_the_power_goes_at_every_call(*, at_once: bool) -> None:
    world, points, number = copied(), 0, 0
    while True:
        number += 1
        fs = SimFileSystem(clock=world.env.clock)
        fs.crash_at = number
        try:
            restore_into(fresh_env(world, fs), world.store, is_local=lambda _: at_once)
        except SimulatedCrash:
            for seed in range(3):
                points += 1
                judge(world, fs.after_crash(seed), at_once=at_once)
            judge(world, fs.after_kill(), at_once=at_once)
        else:
            break
    assert points > 60


def judge(world: TierWorld, fs: SimFileSystem, *, at_once: bool) -> None:
    env = fresh_env(world, fs)
    is_whole = fs.exists(f"{LOG_DIR}/{META_PROPERTIES_FILE}") and not fs.exists(
        f"{LOG_DIR}/{RESTORING_FILE}"
    )
    if fs.exists(f"{LOG_DIR}/{RESTORING_FILE}"):
        with pytest.raises(StorageError, match="run it once more"):
            started(env, world.store)
    if not is_whole:
        restore_into(env, world.store, is_local=lambda _: at_once)
    assert offsets(env, world) == list(range(12))


def test_every_call_fails_once() -> None:
    world, number, has_failed = copied(), 0, True
    while has_failed:
        number += 1
        fs = SimFileSystem(clock=world.env.clock)
        fs.fail_at = number, "eio"
        env, has_failed = fresh_env(world, fs), False
        try:
            restore_into(env, world.store)
        except DiskError:
            has_failed = True
            restore_into(env, world.store)
        fs.fail_at = None
        assert offsets(env, world) == list(range(12))
    assert number > 30
