"""Topics that go on in a store: every record once, from wherever it is; what is lost is told."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.decode.schemas import ALL_COLUMNS, RECORDS
from pipeline.errors import BadOption, DamagedLog, DataLost, NothingThere
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from pipeline.sources.reading import read_task
from protocol.records.markers import ABORT, Marker, build_marker
from storage.tier.manifests import local_state
from storage.tier.names import RECORDS as LOG_OBJECT
from storage.tier.names import SIDE
from storage.validation.internal_batch import own_batch
from tests.support.records.logs import append
from tests.support.spark.pipeline_logs import HOUR_MS, NOON_MS, disordered, read_all
from tests.support.spark.tiered_folder import URL, TieredFolder, serve
from tests.support.tier.restore_world import take_picture
from tests.support.tier.tier_world import KEYS

FIRST = {"producer_epoch": 0, "base_sequence": 0}
COLUMNS = [name for name in ALL_COLUMNS.names if name != "modifiedMs"]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TieredFolder:
    """A log of which the older part is only in the store, and some segments are in both."""
    made = TieredFolder(tmp_path / "data")
    made.known = disordered(made.log, 7, batches=40, dirty=True)
    made.copy_all()
    made.drop_all()
    made.known += disordered(made.log, 8, batches=40)
    made.copy_all()
    take_picture(made)
    serve(monkeypatch, made.store)
    made.store.forget()
    return made


def in_store(**more: str) -> dict[str, str]:
    return {"horolog.tier.url": URL, "subscribe": "t", **more}


def in_both(world: TieredFolder, **more: str) -> dict[str, str]:
    return in_store(log_dirs=str(world.folder), offline="true", **more)


def offsets(rows: list[dict[str, Any]]) -> list[int]:
    return [row["offset"] for row in rows]


def test_both_parts_are_one_log(world: TieredFolder) -> None:
    assert len(list((world.folder / "t-0").glob("*.log"))) > 1, "some segments are in both"

    rows = read_all(in_both(world), ["offset", "timestampMs"])

    assert [(row["offset"], row["timestampMs"]) for row in rows] == world.known
    assert world.store.asked["get"] == world.store.asked["list"] == 0, "the directory knows it"
    assert (
        0
        < world.store.bytes_of["log"]
        < sum(each.size_bytes for each in world.tiered.manifest.segments)
    ), "what is here is read here"


def test_the_store_alone_gives_what_it_has(world: TieredFolder) -> None:
    rows = read_all(in_store(), COLUMNS)

    end = world.tiered.manifest.end_offset
    both = read_all(in_both(world, endingOffsets=f'{{"t":{{"0":{end}}}}}'), COLUMNS)
    assert rows == both
    assert offsets(rows) == list(range(end))


def test_without_the_store_it_is_not_fewer(world: TieredFolder) -> None:
    alone = {"log_dirs": str(world.folder), "offline": "true", "subscribe": "t"}
    first = world.log.snapshot.local_start_offset

    with pytest.raises(DataLost, match=rf"0 to before {first} are only in the tier's object store"):
        read_all(alone)
    assert offsets(read_all({**alone, "failOnDataLoss": "false"}))[0] == first


def test_a_narrow_range_asks_for_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of the manifest pass over segments, zone maps over the rest of one."""
    world = TieredFolder(tmp_path / "data", segment_bytes=400_000, horolog_zone_bytes=4096)
    known = disordered(world.log, 3, batches=1500)
    world.copy_all()
    take_picture(world)
    serve(monkeypatch, world.store)
    low = NOON_MS + 12 * HOUR_MS
    times = {"startingTimestamp": str(low), "endingTimestamp": str(low + HOUR_MS)}
    world.store.forget()

    rows = read_all(in_store(**times), ["offset"])

    end = world.tiered.manifest.end_offset
    assert offsets(rows) == [at for at, ms in known if low <= ms < low + HOUR_MS and at < end]
    sizes = [each.size_bytes for each in world.tiered.manifest.segments]
    assert len(sizes) >= 5
    assert 0 < world.store.bytes_of["log"] <= 2 * max(sizes)
    assert world.store.bytes_of["side"] < sum(sizes) // 100
    assert world.store.asked["get_range"] <= len(sizes) + 4, "zones; sums and blocks of two"


def test_committed_records_end_where_the_store_cannot_tell_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker that aborts a transaction of the store's part is not copied yet."""
    world = TieredFolder(tmp_path / "data")
    log = world.log
    append(log, NOON_MS)
    open_at = append(log, NOON_MS, producer_id=5, transactional=True, **FIRST).base_offset
    append(log, NOON_MS)
    log.roll()
    marker = own_batch(build_marker(Marker(ABORT, 0), 5, 0, NOON_MS), NOON_MS)
    log.append_own(marker, acks_all=False, leader_epoch=0)
    append(log, NOON_MS)
    world.copy_all()
    take_picture(world)
    serve(monkeypatch, world.store)
    committed = {"isolationLevel": "read_committed"}

    assert offsets(read_all(in_store())) == [0, 1, 2]
    assert offsets(read_all(in_store(**committed))) == list(range(open_at))
    assert offsets(read_all(in_both(world, **committed))) == [0, 2, 4]
    world.drop_all()
    assert offsets(read_all(in_both(world, **committed))) == [0, 2, 4]
    log.roll()
    world.copy_all()
    assert offsets(read_all(in_store(**committed))) == [0, 2, 4]


def test_what_the_store_has_lost_or_changed_is_told(world: TieredFolder) -> None:
    row = world.tiered.manifest.segments[1]
    key = KEYS.segment(row.base_offset, row.unique, LOG_OBJECT)
    whole = world.store.objects[key]
    tasks = plan_tasks(parse(in_store()))

    world.store.objects[key] = whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]
    with pytest.raises(DamagedLog, match=f"{key}: the .* are not what was copied; horolog tier"):
        list(read_task(tasks[0], RECORDS))
    del world.store.objects[key]
    with pytest.raises(DataLost, match=f"t-0: the store has lost {key}, which counts"):
        list(read_task(tasks[0], RECORDS))
    world.store.objects[key] = whole
    del world.store.objects[KEYS.segment(row.base_offset, row.unique, SIDE)]
    rows = read_all(in_store(), ["offset"])
    assert offsets(rows) == list(range(world.tiered.manifest.end_offset)), "all of it is compared"


def test_a_broken_chain_of_manifests_is_told(world: TieredFolder) -> None:
    del world.store.objects[KEYS.manifest(world.tiered.manifest.number - 1)]

    with pytest.raises(DamagedLog, match=r"s3://bucket/tier: .*a manifest is missing before it"):
        read_all(in_store())


def test_a_gap_between_both_is_told(world: TieredFolder) -> None:
    """As after a file of the directory was lost."""
    directory = world.folder / "t-0"
    *others, last = sorted(directory.glob("*.log"))
    for each in others:
        each.unlink()
    state = local_state.load(world.env.fs, str(directory))
    assert state is not None
    fewer = state.manifest._replace(segments=state.manifest.segments[:-1])
    local_state.save(world.env.fs, str(directory), state._replace(manifest=fewer))
    unknown = int(last.stem)

    with pytest.raises(DataLost, match=f"{fewer.end_offset} to before {unknown} are neither in"):
        read_all(in_both(world))
    rows = read_all(in_both(world, failOnDataLoss="false"), ["offset"])
    known = [at for at, _ in world.known if not fewer.end_offset <= at < unknown]
    assert offsets(rows) == known


def test_a_directory_behind_its_store_is_passed_over(world: TieredFolder) -> None:
    """As a broker does on it: others have read what the store has."""
    first, *others = sorted((world.folder / "t-0").glob("*.log"))
    first.write_bytes(first.read_bytes()[:-100])
    for each in others:
        each.unlink()

    rows = read_all(in_both(world), ["offset"])

    assert offsets(rows) == list(range(world.tiered.manifest.end_offset))


def test_segments_that_leave_the_directory_after_they_were_planned(world: TieredFolder) -> None:
    tasks = plan_tasks(parse(in_both(world)))
    assert world.drop_all() > 0

    found = [
        each for task in tasks for batch in read_task(task, RECORDS) for each in batch["offset"]
    ]

    assert [each.as_py() for each in found] == [at for at, _ in world.known]


def test_segments_that_retention_took_from_the_store(world: TieredFolder) -> None:
    tasks = plan_tasks(parse(in_store()))
    lenient = plan_tasks(parse(in_store(failOnDataLoss="false")))
    second = world.tiered.manifest.segments[1].base_offset
    world.log.delete_records(second + 1)
    for row in world.tiered.expire():
        world.store.delete(world.tiered.objects_of(row))

    with pytest.raises(DataLost, match=f"offsets from 0 to before {second} are gone"):
        list(read_task(tasks[0], RECORDS))
    (first, *_) = (batch["offset"][0].as_py() for batch in read_task(lenient[0], RECORDS))
    assert first == second
    assert offsets(read_all(in_store()))[0] == second + 1, "only what a reader may see"


def test_mistakes_are_named(world: TieredFolder) -> None:
    def refused(kind: type[Exception], **more: str) -> str:
        with pytest.raises(kind) as caught:
            read_all({"subscribe": "t", **more})
        return str(caught.value)

    told = refused(BadOption, **{"horolog.tier.url": "s3://me:secret@bucket/tier"})
    assert "no credentials belong into a URL" in told
    assert "secret" not in told
    assert "leave out horolog.tier.url" in refused(
        BadOption, bootstrap="h:9092", mode="wire", **{"horolog.tier.url": URL}
    )
    assert f"the topic 'u' is not in {URL}" in refused(NothingThere, **in_store(subscribe="u"))
    world.store.delete([each.key for each in world.store.list(KEYS.prefix)])
    assert f"nothing of the topic 't' is in {URL}" in refused(NothingThere, **in_store())
