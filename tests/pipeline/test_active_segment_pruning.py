"""The segment that is being written is pruned, too; and no row of a zone map is believed that the
log beside it does not bear out, however the two came apart."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from pipeline.decode.schemas import ALL_COLUMNS
from pipeline.sources.bounds import OffsetBounds, Range
from pipeline.sources.file_plan import plan_partition
from pipeline.sources.log_views import views_in
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from protocol.records.scan import scan_batches
from storage.files.layout import LOG, OFFSET_INDEX, TIME_INDEX, ZONES
from storage.log.log import Log
from tests.support.records.logs import append, make_durable
from tests.support.spark.pipeline_logs import (
    DIRTY_MS,
    HOUR_MS,
    NOON_MS,
    checkpoint,
    directory_log,
    disordered,
    read_all,
)
from tests.support.spark.pipeline_topics import make_topic, options, produce
from tests.support.worlds.node_process import NodeProcess

ONE_SEGMENT = {"segment_bytes": 64 << 20}
MINUTE_MS = 60_000
LOG_FILE, ZONES_FILE = f"{0:020d}{LOG}", f"{0:020d}{ZONES}"


def hours_of(log: Log, *, batches: int = 720, dirty_share: float = 0.0) -> list[int]:
    """72 hours of records in order, ten a batch, some of them of the year 2096."""
    dice = random.Random(5)
    times = []
    for number in range(batches):
        made = [NOON_MS + (number * 10 + at) * 36_000 for at in range(10)]
        made = [DIRTY_MS if dice.random() < dirty_share else each for each in made]
        append(log, *made, value=bytes(150))
        times += made
    return times


def pairs(folder: Path, low: int, high: int, **more: str) -> list[tuple[int, int]]:
    bounds = {"startingTimestamp": str(low), "endingTimestamp": str(high)}
    asked = {"log_dirs": str(folder), "subscribe": "t", "offline": "true", **bounds, **more}
    return [
        (row["offset"], row["timestampMs"]) for row in read_all(asked, ["offset", "timestampMs"])
    ]


def wanted(times: list[int], low: int, high: int) -> list[tuple[int, int]]:
    return [(offset, at) for offset, at in enumerate(times) if low <= at < high]


def planned_share(folder: Path, low: int, high: int) -> float:
    view = views_in([str(folder)], ["t"], is_offline=True)[0]
    chunks = plan_partition(view, OffsetBounds(times=Range(low, high - 1)))
    return sum(each.size_bytes for each in chunks) / view.size_bytes


@pytest.fixture(autouse=True)
def _small_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between stretches of logs as small as these."""
    monkeypatch.setattr("pipeline.sources.segment_plan.JOINED_GAP_BYTES", 0)


@pytest.mark.parametrize("dirty_share", [0.0, 0.03], ids=["clean", "dirty"])
@pytest.mark.parametrize("hour", [0, 3, 40, 70])
def test_an_hour_touches_few_bytes_of_the_only_segment(
    tmp_path: Path, hour: int, dirty_share: float
) -> None:
    log = directory_log(tmp_path, **ONE_SEGMENT)
    times = hours_of(log, dirty_share=dirty_share)
    make_durable(log)
    low = NOON_MS + hour * HOUR_MS

    assert len(log.snapshot.segments) == 1
    assert planned_share(tmp_path, low, low + HOUR_MS) < 0.05
    assert pairs(tmp_path, low, low + HOUR_MS) == wanted(times, low, low + HOUR_MS)
    log.close()


def test_what_the_zone_map_does_not_know_yet_is_read(tmp_path: Path) -> None:
    """Between two syncs, with the open zone in memory only, and after more was appended."""
    log = directory_log(tmp_path, **ONE_SEGMENT)
    dice = random.Random(3)
    known: list[tuple[int, int]] = []
    for seed in range(8):
        more = disordered(log, seed, batches=30, dirty=True)
        known += more
        if seed % 2:
            make_durable(log)
        for _ in range(6):
            low = NOON_MS + dice.randint(-HOUR_MS, HOUR_MS)
            high = low + dice.choice([1, MINUTE_MS, HOUR_MS])
            assert pairs(tmp_path, low, high) == [each for each in known if low <= each[1] < high]
    log.close()


def test_arrival_is_told_as_far_as_zones_are_on_the_disk(tmp_path: Path) -> None:
    log = directory_log(tmp_path, **ONE_SEGMENT)
    hours_of(log, batches=60)
    make_durable(log)
    append(log, NOON_MS)
    asked = {"log_dirs": str(tmp_path), "subscribe": "t", "metadataColumns": "true"}
    rows = read_all({**asked, "offline": "true"}, ALL_COLUMNS.names)

    bounds = [row["appendTimeBound"] for row in rows]
    assert bounds[0] == "bounded"
    assert bounds[-1] == "unknown"
    assert bounds == sorted(bounds)
    assert all((row["appendTime"] is None) == (row["appendTimeBound"] == "unknown") for row in rows)
    log.close()


@pytest.mark.parametrize("seed", range(6))
def test_rows_behind_the_end_of_a_cut_log_are_not_believed(tmp_path: Path, seed: int) -> None:
    """As after a power cut that the map outlived: the log is shorter, and whole or torn."""
    log = directory_log(tmp_path, **ONE_SEGMENT)
    known = disordered(log, seed, batches=150, dirty=True)
    log.close()
    path = tmp_path / "t-0" / LOG_FILE
    whole = path.read_bytes()
    dice = random.Random(seed)
    for _ in range(8):
        cut = dice.randrange(len(whole))
        path.write_bytes(whole[:cut])
        left = scan_batches(whole[:cut]).batches
        end = left[-1][2] + 1 if left else 0
        low = NOON_MS + dice.randint(0, 2 * HOUR_MS)
        found = pairs(tmp_path, low, low + HOUR_MS)
        assert found == [each for each in known[:end] if low <= each[1] < low + HOUR_MS]


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_batches_that_others_replaced_are_not_believed(tmp_path: Path, seed: int) -> None:
    """Kafka may truncate a log and go on with batches of the same sizes; it leaves zone maps."""
    dice = random.Random(seed)
    log = directory_log(tmp_path / "one", **ONE_SEGMENT)
    times = hours_of(log, batches=200)
    log.close()
    other = directory_log(tmp_path / "two", **ONE_SEGMENT)
    later = [at + 1000 * HOUR_MS for at in times]
    for number in range(200):
        append(other, *later[number * 10 : number * 10 + 10], value=bytes(150))
    other.close()
    path = tmp_path / "one" / "t-0" / LOG_FILE
    mine, theirs = path.read_bytes(), (tmp_path / "two" / "t-0" / LOG_FILE).read_bytes()
    starts = [row[0] for row in scan_batches(mine).batches]
    cut = dice.randrange(1, len(starts) - 20)
    assert len(mine) == len(theirs)
    path.write_bytes(mine[: starts[cut]] + theirs[starts[cut] :])
    for suffix in (OFFSET_INDEX, TIME_INDEX):  # Kafka makes its own
        path.with_suffix(suffix).unlink()
    held = times[: cut * 10] + later[cut * 10 :]

    for low in dice.sample(held, 10):
        assert pairs(tmp_path / "one", low, low + HOUR_MS) == wanted(held, low, low + HOUR_MS)


def test_a_torn_or_wrong_row_ends_the_map_and_no_more(tmp_path: Path) -> None:
    log = directory_log(tmp_path, **ONE_SEGMENT)
    times = hours_of(log)
    log.close()
    path = tmp_path / "t-0" / ZONES_FILE
    rows = path.read_bytes()
    for damaged in (
        rows[:-20],
        rows[: len(rows) // 2] + b"!" + rows[len(rows) // 2 + 1 :],
        b"",
        b"x",
    ):
        path.write_bytes(damaged)
        assert pairs(tmp_path, NOON_MS, NOON_MS + HOUR_MS) == wanted(
            times, NOON_MS, NOON_MS + HOUR_MS
        )
    path.write_bytes(rows[:-20])
    assert planned_share(tmp_path, NOON_MS, NOON_MS + HOUR_MS) < 0.05


def test_a_log_that_was_seen_before_it_grew_is_planned_as_it_was(tmp_path: Path) -> None:
    log = directory_log(tmp_path, **ONE_SEGMENT)
    times = hours_of(log, batches=100)
    make_durable(log)
    checkpoint(tmp_path, t_0=1000)
    view = views_in([str(tmp_path)], ["t"])[0]
    hours_of(log, batches=300)
    make_durable(log)
    chunks = plan_partition(view, OffsetBounds(times=Range(NOON_MS, NOON_MS + HOUR_MS)))

    assert sum(each.size_bytes for each in chunks) > 0
    assert all(each.selection.last_offset < 1000 for each in chunks)
    assert all(one.end <= other.start for one, other in pairwise(chunks))
    assert len(times) == view.end_offset
    log.close()


def test_a_live_broker_s_only_segment(node: NodeProcess, admin: AdminClient) -> None:
    topic = make_topic(admin, horolog_zone_bytes="4096")
    times = [NOON_MS + n * MINUTE_MS for n in range(3000)]
    for first in range(0, len(times), 20):
        produce(node, topic, times[first : first + 20])
    low = NOON_MS + 5 * HOUR_MS
    asked = options(
        node, topic, mode="files",
        startingTimestamp=str(low), endingTimestamp=str(low + HOUR_MS),
    )  # fmt: skip
    everything = sum(
        each.size_bytes
        for task in plan_tasks(parse(options(node, topic, mode="files")))
        for each in task
    )
    planned = sum(each.size_bytes for task in plan_tasks(parse(asked)) for each in task)

    assert planned < everything / 5
    assert [row["offset"] for row in read_all(asked, ["offset"])] == list(range(300, 360))
