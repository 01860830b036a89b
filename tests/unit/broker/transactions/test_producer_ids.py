"""Producer ids: never twice, whatever crashes."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from broker.transactions.producer_ids import BLOCK_SIZE, ProducerIds
from protocol.apis import init_producer_id, write_txn_markers
from storage.directory.producer_ids_file import AHEAD, FAR, FILE_NAME
from storage.env import Env
from storage.errors import CorruptCheckpoint, NewerFormat, StorageError
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.worlds.handler_world import World

DIR = "/data"
LAST = 2**63 - 1


class InlineLanes:
    """Work is done before `run` returns."""

    log_dir = DIR

    def run(self, work: Callable[..., Any], *args: object) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            future.set_result(work(*args))
        except StorageError as error:
            future.set_exception(error)
        return future


def started(env: Env, *in_logs: int) -> ProducerIds:
    env.fs.make_dir(DIR)
    env.fs.sync_dir("/")
    ids = ProducerIds(env, InlineLanes(), lambda: in_logs)  # type: ignore[arg-type]
    ids.load()
    return ids


def stored(env: Env) -> int:
    end = json.loads(env.fs.read_text(f"{DIR}/{FILE_NAME}"))["reserved_below"]
    assert isinstance(end, int)
    return end


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


async def test_without_a_file_ids_begin_far_above_those_that_a_kafka_gave_out() -> None:
    """It gave out more than its logs remember: to producers that have not written, or long ago."""
    first = await started(sim_env(), 12, 4711).allocate()
    assert 4711 + AHEAD < first < 4711 + AHEAD + 2 * BLOCK_SIZE
    assert await started(sim_env(), 12, 4711, LAST, FAR, -1).allocate() == first
    assert await started(sim_env(), -1).allocate() == 0


@pytest.mark.parametrize("made_up", [5, 999, 1000, 4711, FAR, 2**62, LAST])
async def test_an_id_that_was_never_given_out_moves_nothing(made_up: int) -> None:
    env = sim_env()
    assert await started(env).allocate() == 0
    taken = await take(started(env, made_up), 2 * BLOCK_SIZE)
    assert made_up not in taken
    assert len(set(taken)) == 2 * BLOCK_SIZE
    assert max(taken) < 4 * BLOCK_SIZE
    assert stored(env) <= 4 * BLOCK_SIZE


async def test_a_block_in_which_a_strangers_id_lies_is_passed_over() -> None:
    env = sim_env()
    await started(env).allocate()
    ids = started(env, 1500, 3999)
    ids.is_used(2000)
    ids.is_used(LAST)
    assert [await ids.allocate(), stored(env)] == [4000, 5000]


@pytest.mark.parametrize("bad", [2**63, 2**63 + 1000, LAST, 2**70])
async def test_a_file_with_a_number_beyond_all_ids_heals(bad: int) -> None:
    env = sim_env()
    env.fs.make_dir(DIR)
    env.fs.write_atomically(f"{DIR}/{FILE_NAME}", b'{"format": 1, "reserved_below": %d}' % bad)
    first = await started(env, LAST).allocate()
    second = await started(env, LAST).allocate()
    assert FAR <= first < second < FAR + 10 * BLOCK_SIZE


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
        ('{"format": 1, "reserved_below": -5}', CorruptCheckpoint),
        ('{"format": 1, "reserved_below": 46e872100}', CorruptCheckpoint),
        ('{"format": 1, "reserved_below": true}', CorruptCheckpoint),
        ('{"format": 1, "reserved_below": "12"}', CorruptCheckpoint),
        ('{"format": 2, "reserved_below": 5}', NewerFormat),
    ],
)
def test_a_file_that_cannot_be_trusted_stops_the_start(text: str, error: type[Exception]) -> None:
    env = sim_env()
    env.fs.make_dir(DIR)
    env.fs.write_atomically(f"{DIR}/{FILE_NAME}", text.encode())
    with pytest.raises(error):
        started(env)


@pytest.mark.parametrize("by", ["batch", "marker"])
async def test_the_largest_id_there_is_ends_nothing(by: str) -> None:
    world = World(horolog_durability="os")
    await world.make_topic()
    assert (await world.call(init_producer_id.InitProducerIdRequest(), 5)).producer_id == 0
    if by == "batch":
        who = {"producer_id": LAST, "producer_epoch": 0, "base_sequence": 0}
        assert (await world.produce(b"x", **who)).error_code == 0
    else:
        marker = write_txn_markers.WritableTxnMarker(
            producer_id=LAST,
            transaction_result=True,
            topics=[write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
        )
        await world.call(write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1)
    again = world.restarted()
    answer = await again.call(init_producer_id.InitProducerIdRequest(), 5)
    assert (answer.error_code, answer.producer_id) == (0, BLOCK_SIZE)
