"""Reading directories: exact whatever the order of times, bounded by what the broker calls
readable, and never silent about what is missing."""

import os
import random
import shutil
from pathlib import Path

import pytest

from pipeline.decode.schemas import ALL_COLUMNS, RECORDS
from pipeline.errors import BadOption, DamagedLog, DataLost, NothingThere
from pipeline.sources.bounds import OffsetBounds, Range
from pipeline.sources.file_plan import plan_partition
from pipeline.sources.log_ends import last_stable_offset
from pipeline.sources.log_views import views_in
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from pipeline.sources.reading import read_chunk, read_task
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy_builder import build_set
from storage.files.layout import FLEET_FILE, HIGH_WATERMARKS_FILE, LOG, SNAPSHOT, ZONES
from storage.posix import real_env
from tests.support.records.logs import append
from tests.support.records.transactional_samples import write_transactions
from tests.support.spark.pipeline_logs import (
    DIRTY_MS,
    HOUR_MS,
    NOON_MS,
    checkpoint,
    directory_log,
    disordered,
    read_all,
)


def options(folder: Path, **more: str) -> dict[str, str]:
    return {"log_dirs": str(folder), "subscribe": "t", **more}


def pairs(folder: Path, **more: str) -> list[tuple[int, int]]:
    rows = read_all(options(folder, **more), ["offset", "timestampMs"])
    return [(row["offset"], row["timestampMs"]) for row in rows]


@pytest.mark.parametrize("zones", [True, False], ids=["with zone maps", "time index only"])
@pytest.mark.parametrize("dirty", [False, True], ids=["clean", "dirty"])
def test_any_range_of_times_is_exact(tmp_path: Path, *, zones: bool, dirty: bool) -> None:
    log = directory_log(tmp_path)
    known = disordered(log, 7, dirty=dirty)
    assert len(log.snapshot.segments) > 3
    log.close()
    if not zones:
        for path in (tmp_path / "t-0").glob(f"*{ZONES}"):
            path.unlink()
    dice = random.Random(1)
    for _ in range(40):
        low = NOON_MS + dice.randint(-HOUR_MS, 3 * HOUR_MS)
        high = low + dice.choice([1, 60_000, HOUR_MS])
        found = pairs(tmp_path, startingTimestamp=str(low), endingTimestamp=str(high))
        assert found == [(offset, at) for offset, at in known if low <= at < high]


def test_an_hour_reads_few_bytes_also_when_times_are_dirty(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    disordered(log, 3, batches=900, dirty=True)
    log.close()
    view = views_in([str(tmp_path)], ["t"])[0]
    everything = sum(each.size_bytes for each in plan_partition(view, OffsetBounds()))
    times = Range(NOON_MS + 5 * HOUR_MS, NOON_MS + 5 * HOUR_MS + 60_000)

    hour = sum(each.size_bytes for each in plan_partition(view, OffsetBounds(times=times)))

    assert hour < everything / 3


@pytest.mark.parametrize("seed", range(4))
def test_any_range_of_offsets_is_exact_in_any_number_of_tasks(tmp_path: Path, seed: int) -> None:
    log = directory_log(tmp_path)
    known = disordered(log, seed)
    log.close()
    dice = random.Random(seed)
    for _ in range(10):
        first = dice.randint(0, len(known))
        last = dice.randint(first, len(known))
        found = pairs(
            tmp_path,
            startingOffsets=f'{{"t": {{"0": {first}}}}}',
            endingOffsets=f'{{"t": {{"0": {last}}}}}',
            minPartitions=str(dice.randint(1, 20)),
        )
        assert found == known[first:last]


def test_by_offset_times_mean_what_they_mean_to_spark_s_connector(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    append(log, NOON_MS, NOON_MS + 5, NOON_MS + 2, NOON_MS + 9, NOON_MS + 1)
    log.close()
    more = {"startingTimestamp": str(NOON_MS + 2), "endingTimestamp": str(NOON_MS + 9)}

    assert [offset for offset, _ in pairs(tmp_path, **more)] == [1, 2]
    assert [offset for offset, _ in pairs(tmp_path, endingTimestampMode="offset", **more)] == [1, 2]
    more["endingTimestamp"] = str(NOON_MS + 3)
    assert [offset for offset, _ in pairs(tmp_path, **more)] == [2]
    assert not pairs(tmp_path, endingTimestampMode="offset", **more)


def test_a_live_directory_is_read_up_to_the_high_watermark_and_no_further(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    for _ in range(5):
        append(log, NOON_MS, NOON_MS)
    checkpoint(tmp_path, t_0=6)

    assert [offset for offset, _ in pairs(tmp_path)] == list(range(6))
    path = tmp_path / "t-0" / f"{0:020d}{LOG}"
    with path.open("ab") as file:
        file.write(bytes(30))  # an append under way
    assert [offset for offset, _ in pairs(tmp_path)] == list(range(6))
    assert [offset for offset, _ in pairs(tmp_path, offline="true")] == list(range(10))
    log.close()


def test_a_topic_that_the_watermarks_do_not_know_yet_has_nothing_to_read(tmp_path: Path) -> None:
    append(directory_log(tmp_path), NOON_MS)
    checkpoint(tmp_path, other_0=6)

    assert not pairs(tmp_path)


def test_bytes_that_are_wrong_below_the_watermark_are_told_with_their_place(
    tmp_path: Path,
) -> None:
    log = directory_log(tmp_path)
    append(log, NOON_MS)
    second = log.snapshot.end_position
    append(log, NOON_MS, value=b"second")
    log.close()
    path = tmp_path / "t-0" / f"{0:020d}{LOG}"
    whole = path.read_bytes()
    checkpoint(tmp_path, t_0=2)

    path.write_bytes(whole[:-1] + b"!")
    with pytest.raises(DamagedLog, match=f"t-0, segment 0, at byte {second}: the crc"):
        pairs(tmp_path)
    path.write_bytes(whole[:-3])
    with pytest.raises(DamagedLog, match=f"t-0, segment 0, at byte {second}: .* cut off"):
        pairs(tmp_path)


def test_zones_that_speak_of_another_log_are_not_believed(tmp_path: Path) -> None:
    """As after Kafka's cleaner has been at a directory of ours: it knows nothing of zone maps."""
    for name in ("one", "two"):
        log = directory_log(tmp_path / name)
        known = disordered(log, 4 if name == "one" else 5)
        log.close()
    for path in (tmp_path / "one" / "t-0").glob(f"*{ZONES}"):
        target = tmp_path / "two" / "t-0" / path.name
        if target.exists():
            shutil.copy(path, target)
    low, high = NOON_MS, NOON_MS + 600_000

    found = pairs(tmp_path / "two", startingTimestamp=str(low), endingTimestamp=str(high))

    assert found == [(offset, at) for offset, at in known if low <= at < high]


def test_a_segment_that_was_replaced_after_the_plan_is_planned_again(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    known = disordered(log, 9)
    log.close()
    tasks = plan_tasks(parse(options(tmp_path)))
    for path in (tmp_path / "t-0").glob(f"*{LOG}"):
        shutil.copy(path, f"{path}.new")
        os.replace(f"{path}.new", path)

    found = [row for task in tasks for batch in read_task(task, RECORDS) for row in batch["offset"]]

    assert [each.as_py() for each in found] == [offset for offset, _ in known]


def test_segments_that_have_gone_are_told_or_passed_over(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    known = disordered(log, 11)
    base = log.snapshot.segments[1].base_offset
    log.close()
    tasks = {
        fails: plan_tasks(parse(options(tmp_path, failOnDataLoss=fails)))
        for fails in ("true", "false")
    }
    for path in (tmp_path / "t-0").glob(f"{0:020d}*"):
        path.unlink()

    with pytest.raises(DataLost, match=rf"t-0: offsets from 0 to before {base} are gone"):
        [batch for task in tasks["true"] for batch in read_task(task, RECORDS)]
    left = [batch for task in tasks["false"] for batch in read_task(task, RECORDS)]
    assert sum(batch.num_rows for batch in left) == len(known) - base


def test_both_times_of_a_record(tmp_path: Path) -> None:
    """A stamped topic has both exactly; else arrival comes from the zone map, as a bound."""
    stamped = directory_log(tmp_path, message_timestamp_type="LogAppendTime")
    append(stamped, 1000, 2000)
    stamped.close()
    plain = directory_log(tmp_path, 1)
    disordered(plain, 2, dirty=True)
    last_closed = plain.snapshot.segments[-1].base_offset
    plain.close()
    rows = read_all(options(tmp_path, metadataColumns="true"), ALL_COLUMNS.names)

    assert [row["createTimeMs"] for row in rows[:2]] == [1000, 2000]
    assert {row["appendTimeBound"] for row in rows[:2]} == {"exact"}
    assert all(row["appendTime"] == row["timestamp"] for row in rows[:2])
    closed = [row for row in rows[2:] if row["offset"] < last_closed]
    assert {row["appendTimeBound"] for row in closed} == {"bounded"}
    now_ms = real_env().clock.now_ms()
    assert all(0 <= now_ms - row["appendTime"].timestamp() * 1000 < HOUR_MS for row in closed)


def test_only_what_arrived_in_a_range_is_planned(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    disordered(log, 2)
    log.close()
    view = views_in([str(tmp_path)], ["t"])[0]
    now_ms = real_env().clock.now_ms()

    def planned(low: int, high: int) -> int:
        chunks = plan_partition(view, OffsetBounds(arrivals=Range(low, high)))
        return sum(each.size_bytes for each in chunks)

    assert planned(now_ms - HOUR_MS, now_ms) == log.snapshot.size_bytes
    assert not planned(DIRTY_MS, DIRTY_MS + 1)
    before = log.snapshot.end_position
    again = directory_log(tmp_path)
    append(again, NOON_MS)  # its arrival is in memory only
    view = views_in([str(tmp_path)], ["t"])[0]
    assert planned(DIRTY_MS, DIRTY_MS + 1) == again.snapshot.end_position - before


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": "t", "assign": "{}"}, "subscribe and assign"),
        ({"startingTimestamp": "yesterday"}, "no time in milliseconds"),
        ({"startingTimestamp": "5", "startingOffsets": "earliest"}, "say the same in two ways"),
        ({"view": "record"}, "none of records, batches"),
        ({"mode": "wire"}, "needs kafka.bootstrap.servers"),
        ({"endingOffsets": "earliest"}, "cannot be earliest"),
        ({"startingOffsets": '{"t": 5}'}, "no JSON like"),
        ({"minPartitions": "0"}, "no number above 0"),
        ({"includeHeaders": "yes"}, "neither true nor false"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(more: dict[str, str], told: str) -> None:
    with pytest.raises(BadOption, match=told):
        parse({"log_dirs": "/data", "subscribe": "t", **more})


@pytest.mark.parametrize(
    "name",
    [
        "startingOffsets", "endingOffsets", "startingOffsetsByTimestamp",
        "endingOffsetsByTimestamp",
    ],
)  # fmt: skip
def test_what_is_told_by_partition_is_told_for_all_that_are_read(tmp_path: Path, name: str) -> None:
    for partition in (0, 1):
        append(directory_log(tmp_path, partition), NOON_MS)
    for told, why in (
        ('{"t": {"0": 1}}', f"{name} says nothing of t-1"),
        ('{"t": {"0": 1, "1": 1, "2": 1}}', f"{name} names t-2"),
        ('{"t": {"0": 1, "1": 1}, "T": {"0": 1}}', f"{name} names T-0"),
        ('{"T": {"0": 1, "1": 1}}', f"{name} says nothing of t-0"),
    ):
        with pytest.raises(BadOption, match=why):
            read_all(options(tmp_path, **{name: told}))
    assert read_all(options(tmp_path, **{name: '{"t": {"0": 1, "1": 1}}'})) is not None
    only = {"log_dirs": str(tmp_path), "assign": '{"t": [1]}', name: '{"t": {"1": 1}}'}
    assert read_all(only) is not None


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    append(directory_log(tmp_path), NOON_MS)

    with pytest.raises(NothingThere, match="the topic 'u'"):
        read_all({"log_dirs": str(tmp_path), "subscribe": "u"})
    with pytest.raises(NothingThere, match="no partition t-1"):
        read_all({"log_dirs": str(tmp_path), "assign": '{"t": [0, 1]}'})
    with pytest.raises(NothingThere, match=r"no topic is called like 'x\.\*'"):
        read_all({"log_dirs": str(tmp_path), "subscribePattern": "x.*"})
    with pytest.raises(DataLost, match="t-0 has offsets from 0 to before 1, not 9"):
        read_all(options(tmp_path, startingOffsets='{"t": {"0": 9}}'))


def test_damaged_watermarks_are_no_empty_partitions(tmp_path: Path) -> None:
    append(directory_log(tmp_path), NOON_MS)
    (tmp_path / HIGH_WATERMARKS_FILE).write_text("0\n2\nt 0 1\n")

    with pytest.raises(DamagedLog, match="1 rows, but it says '2': nothing says up to where"):
        read_all(options(tmp_path))
    assert len(read_all(options(tmp_path, offline="true"))) == 1


@pytest.mark.parametrize("again", ["", "/", "-copy"])
def test_a_partition_in_two_directories_is_not_read_twice(again: str, tmp_path: Path) -> None:
    """Of one broker that is named twice, or of two replicas."""
    data = tmp_path / "data"
    append(directory_log(data), NOON_MS)
    if again == "-copy":
        shutil.copytree(data, f"{data}-copy")

    with pytest.raises(BadOption, match=f"t-0 is in {data}/t-0 and in {data}"):
        read_all({"log_dirs": f"{data},{data}{again}", "subscribe": "t"})


def test_chunks_read_alone_give_what_they_claim(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    disordered(log, 13)
    log.close()
    view = views_in([str(tmp_path)], ["t"])[0]
    for chunk in plan_partition(view, OffsetBounds(), most_bytes=3000):
        batches = list(read_chunk(chunk, RECORDS))
        offsets = [each.as_py() for batch in batches for each in batch["offset"]]
        assert offsets == list(range(chunk.selection.first_offset, chunk.selection.last_offset + 1))


def test_committed_records_of_a_directory_without_a_broker(tmp_path: Path) -> None:
    """Producer 1 aborts twice, 2 commits once, 3 is open from offset 12 on."""
    write_transactions(tmp_path / "t-0")

    everything = [offset for offset, _ in pairs(tmp_path)]
    committed = [offset for offset, _ in pairs(tmp_path, isolationLevel="read_committed")]

    assert everything == [0, 1, 2, 3, 4, 6, 7, 9, 10, 12, 13]
    assert committed == [2, 3, 6, 7]
    (tmp_path / "t-0" / f"{14:020d}{SNAPSHOT}").unlink()
    assert last_stable_offset(str(tmp_path / "t-0"), 14) == 12


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4], ids=lambda codec: codec.name)
def test_messages_of_the_old_formats_are_read(tmp_path: Path, magic: int, codec: Codec) -> None:
    """Also where batches of format 2 follow them, as after a Kafka was told to write those."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    rows = [(at, NOON_MS + at, b"k%d" % at, bytes(at % 300)) for at in range(5, 400)]
    path = folder / f"{0:020d}{LOG}"
    sets = [rows[first : first + 7] for first in range(0, len(rows), 7)]
    path.write_bytes(b"".join(build_set(each, magic, codec=codec) for each in sets))
    wanted = [(at, time if magic else -1) for at, time, _, _ in rows]

    assert pairs(tmp_path) == wanted
    told = read_all(options(tmp_path), RECORDS.names)
    assert [(row["key"], row["value"]) for row in told] == [(key, value) for *_, key, value in rows]
    low, high = NOON_MS + 100, NOON_MS + 200
    found = pairs(tmp_path, startingTimestamp=str(low), endingTimestamp=str(high))
    assert found == [(at, time) for at, time in wanted if low <= time < high]

    batch = build_batch([(NOON_MS, b"new", b"er")], base_offset=400)
    path.write_bytes(path.read_bytes() + batch)
    assert pairs(tmp_path) == [*wanted, (400, NOON_MS)]
    path.write_bytes(path.read_bytes()[: -len(batch) - 3])  # torn
    assert pairs(tmp_path) == wanted[: -len(sets[-1]) if codec else -1]


def test_old_messages_have_the_places_where_they_lie(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    first, second = (build_set([(at, NOON_MS, b"k", b"v")], 1, codec=Codec.GZIP) for at in (0, 1))
    (tmp_path / "t-0" / f"{0:020d}{LOG}").write_bytes(first + second)

    rows = read_all(options(tmp_path, metadataColumns="true"), ALL_COLUMNS.names)

    assert [row["position"] for row in rows] == [0, len(first)]


def test_a_damaged_old_message_is_told_with_its_place(tmp_path: Path) -> None:
    append(directory_log(tmp_path), NOON_MS)
    path = tmp_path / "t-0" / f"{0:020d}{LOG}"
    at = path.stat().st_size
    message = build_set([(5, NOON_MS, b"k", bytes(100))], 1)
    path.write_bytes(path.read_bytes() + message[:-1] + b"!")
    checkpoint(tmp_path, t_0=6)

    with pytest.raises(DamagedLog, match=rf"t-0, segment 0, at byte {at}: .*CRC"):
        pairs(tmp_path)


@pytest.mark.parametrize("is_empty", [True, False])
def test_files_that_end_before_what_the_leader_has_are_no_holes(
    tmp_path: Path, *, is_empty: bool
) -> None:
    """They were taken for offsets that compaction had removed: an archive lost what was there."""
    log = directory_log(tmp_path)
    if not is_empty:
        append(log, *[NOON_MS] * 20)
    log.close()
    (view,) = views_in([str(tmp_path)], ["t"], is_offline=True)
    led = view._replace(leader="127.0.0.1:9", end_offset=30)
    with pytest.raises(DataLost, match=r"t-0: the files in .* end before (0|20), and 127"):
        plan_partition(led, OffsetBounds())
    assert plan_partition(led, OffsetBounds(), fails_on_loss=False) is not None
    if not is_empty:
        whole = plan_partition(led, OffsetBounds(Range(0, 19)))
        assert sum(chunk.selection.last_offset + 1 for chunk in whole) >= 20


def test_a_directory_of_a_fleet_is_refused(tmp_path: Path) -> None:
    log = directory_log(tmp_path)
    append(log, NOON_MS)
    log.close()
    assert len(pairs(tmp_path, offline="true")) == 1
    (tmp_path / FLEET_FILE).write_text("{}")
    with pytest.raises(NothingThere, match=r"is that of a node of a fleet.*bootstrap"):
        pairs(tmp_path, offline="true")
