"""Producer ids: never twice, whatever crashes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from broker.producer_ids import BLOCK_SIZE, FILE_NAME, ProducerIds
from storage.env import Env
from storage.errors import CorruptCheckpoint, NewerFormat, StorageError
from tests.support.simdisk import SimFileSystem
from tests.support.simenv import sim_env

DIR = "/data"


class InlineLanes:
    """Work is done before `run` returns."""

    def run(self, log_dir: str, work: Callable[..., Any], *args: object) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(work(*args))
        except StorageError as error:
            future.set_exception(error)
        return future


def started(env: Env, largest_seen: int = -1) -> ProducerIds:
    env.fs.make_dir(DIR)
    env.fs.sync_dir("/")
    ids = ProducerIds(env, DIR, InlineLanes())  # type: ignore[arg-type]
    ids.load(largest_seen)
    return ids


async def take(ids: ProducerIds, count: int) -> list[int]:
    return await asyncio.gather(*(ids.allocate() for _ in range(count)))


async def test_ids_are_unique_over_blocks() -> None:
    ids = started(sim_env())
    taken = await take(ids, BLOCK_SIZE * 2 + 10)
    assert sorted(taken) == list(range(BLOCK_SIZE * 2 + 10))


@pytest.mark.parametrize("seed", range(8))
async def test_no_id_comes_back_after_a_power_cut(seed: int) -> None:
    fs = SimFileSystem()
    taken = await take(started(sim_env(fs=fs)), 5)
    fs = fs.after_crash(seed)
    taken += await take(started(sim_env(fs=fs)), 5)
    assert len(set(taken)) == 10


async def test_ids_begin_above_those_in_the_logs() -> None:
    assert await started(sim_env(), largest_seen=4711).allocate() == 4712


async def test_a_full_disk_gives_no_id_and_a_later_try_does() -> None:
    fs = SimFileSystem()
    ids = started(sim_env(fs=fs))
    fs.capacity_bytes = 0
    with pytest.raises(Exception, match="failed"):
        await ids.allocate()
    fs.capacity_bytes = None
    assert await ids.allocate() >= 0


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", CorruptCheckpoint),
        ("{}", CorruptCheckpoint),
        ('{"format": 1}', CorruptCheckpoint),
        ('{"format": 2, "reserved_below": 5}', NewerFormat),
    ],
)
def test_a_file_that_cannot_be_trusted_stops_the_start(text: str, error: type[Exception]) -> None:
    env = sim_env()
    env.fs.make_dir(DIR)
    env.fs.write_atomically(f"{DIR}/{FILE_NAME}", text.encode())
    with pytest.raises(error):
        started(env)
