"""Copies of data directories in an object store give what the directories give, and say what is
wrong with them. The store is a process that speaks S3's protocol."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from broker.cli.main import main
from pipeline.decode.schemas import ALL_COLUMNS, RECORDS, VIEWS
from pipeline.directories import log_files
from pipeline.errors import BadOption, DamagedLog, DataLost, NothingThere
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from pipeline.sources.reading import read_task
from pipeline.spark.views import ViewReader
from storage.errors import DiskError
from storage.files.layout import LOG, OFFSET_INDEX, TIME_INDEX, ZONES
from storage.log.log import Log
from tests.support.records.logs import append
from tests.support.records.transactional_samples import write_transactions
from tests.support.spark.object_store import BUCKET, ObjectStore, object_store
from tests.support.spark.pipeline_logs import (
    HOUR_MS,
    NOON_MS,
    checkpoint,
    directory_log,
    disordered,
    read_all,
)


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> str:
    """A name in the bucket for this test alone."""
    return f"{request.node.name.translate(str.maketrans('[] ', '---'))}/data"


def asked(where: str | Path, **more: str) -> dict[str, str]:
    return {"log_dirs": str(where), "subscribe": "t", **more}


def some_segments(folder: Path, partition: int = 0, **settings: Any) -> Log:
    """Few of them: each takes some requests."""
    return directory_log(folder, partition, segment_bytes=70_000, **settings)


def view_rows(where: str | Path, view: str) -> list[dict[str, Any]]:
    reader = ViewReader(parse(asked(where, view=view)), VIEWS[view])
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def test_a_copy_gives_what_the_directory_gives(
    tmp_path: Path, store: ObjectStore, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All columns, in many ranges, by the environment's credentials."""
    for partition in range(2):
        log = some_segments(tmp_path, partition)
        disordered(log, partition, batches=60, dirty=True)
        log.close()
    store.copy(tmp_path, folder)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    there = f"s3://{BUCKET}/{folder}"

    columns = ALL_COLUMNS.names
    assert read_all(asked(there), columns) == read_all(asked(tmp_path), columns)
    for low in (NOON_MS, NOON_MS + HOUR_MS):
        times = {"startingTimestamp": str(low), "endingTimestamp": str(low + 60_000)}
        planned = [plan_tasks(parse(asked(where, **times))) for where in (there, tmp_path)]
        sizes = [[chunk.size_bytes for task in plan for chunk in task] for plan in planned]
        assert sizes[0] == sizes[1]
        assert read_all(asked(there, **times)) == read_all(asked(tmp_path, **times))
    log_files._store.cache_clear()


def test_views_of_a_copy(tmp_path: Path, store: ObjectStore, folder: str) -> None:
    log = some_segments(tmp_path)
    disordered(log, 3)
    log.close()
    store.copy(tmp_path, folder)
    own = {"modifiedMs", "directory"}
    for view in VIEWS:
        found = view_rows(store.uri(folder), view)
        assert [{k: v for k, v in row.items() if k not in own} for row in found] == [
            {k: v for k, v in row.items() if k not in own} for row in view_rows(tmp_path, view)
        ]


def test_a_copy_has_what_it_has(tmp_path: Path, store: ObjectStore, folder: str) -> None:
    """No watermark bounds it; the end of a segment that was being written may be torn off."""
    log = some_segments(tmp_path)
    append(log, NOON_MS, NOON_MS)
    append(log, NOON_MS)
    checkpoint(tmp_path, t_0=1)
    path = tmp_path / "t-0" / f"{0:020d}{LOG}"
    path.write_bytes(path.read_bytes()[:-3])
    write_transactions(tmp_path / "t-1")
    store.copy(tmp_path, folder)

    rows = read_all(asked(store.uri(folder), isolationLevel="read_committed"), RECORDS.names)

    assert [row["offset"] for row in rows if row["partition"] == 0] == [0, 1]
    assert [row["offset"] for row in rows if row["partition"] == 1] == [2, 3, 6, 7]


def test_what_changes_while_it_is_read_is_told(
    tmp_path: Path, store: ObjectStore, folder: str
) -> None:
    log = directory_log(tmp_path)
    disordered(log, 5)
    bases = [segment.base_offset for segment in log.snapshot.segments]
    log.close()
    store.copy(tmp_path, folder)
    first, second = (f"{BUCKET}/{folder}/t-0/{base:020d}{LOG}" for base in bases[:2])
    tasks = plan_tasks(parse(asked(store.uri(folder), minPartitions="50")))
    half = (tmp_path / "t-0" / f"{bases[1]:020d}{LOG}").read_bytes()[:10_000]
    store.files.delete_file(first)
    with store.files.open_output_stream(second) as out:
        out.write(half)

    for base in bases[:2]:
        changed = [task for task in tasks if task[0].segment == base]  # type: ignore[union-attr]
        with pytest.raises(DataLost, match=rf"t-0: the copied segment at {base} was removed or"):
            list(read_task(changed[0], RECORDS))
    left = [batch for task in tasks[-2:] for batch in read_task(task, RECORDS)]
    assert sum(batch.num_rows for batch in left) > 0
    with pytest.raises(DataLost, match=f"t-0 has offsets from {bases[1]} to before"):
        read_all(asked(store.uri(folder), startingOffsets='{"t":{"0":0}}'))
    with pytest.raises(DamagedLog, match=f"t-0, segment {bases[1]}, at byte .* cut off"):
        read_all(asked(store.uri(folder)))


def test_an_object_that_goes_under_the_reader(
    tmp_path: Path, store: ObjectStore, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = some_segments(tmp_path)
    disordered(log, 6)
    log.close()
    store.copy(tmp_path, folder)
    monkeypatch.setattr("pipeline.sources.file_reading.RANGE_BYTES", 3000)
    ((chunk, *_), *_) = plan_tasks(parse(asked(store.uri(folder))))
    reading = read_task((chunk,), RECORDS)
    assert next(reading).num_rows
    store.files.delete_dir_contents(f"{BUCKET}/{folder}")

    with pytest.raises(DataLost, match="t-0: the copied segment at 0 was removed"):
        list(reading)


def test_mistakes_are_named_and_no_secret_is_told(store: ObjectStore) -> None:
    def refused(kind: type[Exception], where: str, **more: str) -> str:
        with pytest.raises(kind) as caught:
            read_all(asked(where, **more))
        return str(caught.value)

    assert "no store hdfs://, only s3, gs" in refused(BadOption, "hdfs://name/data")
    assert "leave out kafka.bootstrap" in refused(BadOption, "s3://b/data", bootstrap="h:9092")
    assert "write %2F" in refused(BadOption, "s3://b/data?endpoint_override=http://h:1")
    assert "no_such" in refused(BadOption, "s3://b/data?no_such=1")
    told = refused(DiskError, store.uri("data").replace(BUCKET, "elsewhere"))
    assert told.startswith("s3://elsewhere/data: list failed: ")
    assert "bucket does not exist" in told
    told += refused(DiskError, store.uri("nothing/here"))
    assert "secret" not in told
    assert "endpoint_override" not in told


def test_a_topic_that_was_not_copied(tmp_path: Path, store: ObjectStore, folder: str) -> None:
    append(some_segments(tmp_path), NOON_MS)
    store.copy(tmp_path, folder)
    with pytest.raises(NothingThere, match=f"the topic 'u' is not in s3://{BUCKET}/{folder}$"):
        read_all({"log_dirs": store.uri(folder), "subscribe": "u"})


def test_without_indexes_all_is_read(tmp_path: Path, store: ObjectStore, folder: str) -> None:
    log = some_segments(tmp_path)
    known = disordered(log, 8)
    log.close()
    for suffix in (OFFSET_INDEX, TIME_INDEX, ZONES):
        for path in (tmp_path / "t-0").glob(f"*{suffix}"):
            path.unlink()
    store.copy(tmp_path, folder)
    low = NOON_MS + HOUR_MS // 2

    rows = read_all(
        asked(store.uri(folder), startingTimestamp=str(low), endingTimestamp=str(low + 60_000))
    )

    assert [row["offset"] for row in rows] == [at for at, ms in known if low <= ms < low + 60_000]


def test_jobs_read_copies_where_that_makes_sense(
    tmp_path: Path, store: ObjectStore, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    for partition in range(2):
        log = some_segments(data, partition, message_timestamp_type="LogAppendTime")
        disordered(log, partition, batches=20)
        log.close()
    store.copy(data, folder)
    out = tmp_path / "archive"
    total = len(read_all(asked(data)))

    def run(job: str, *more: str) -> Any:
        at = ["--log-dirs", store.uri(folder)]
        status = main(["spark", job, *at, *more])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    status, _, _ = run("archive", "--topic", "t", "--out", str(out), "--json")
    assert status == 0
    assert ds.dataset(out / "records", partitioning="hive").count_rows() == total
    assert run("archive", "--topic", "t", "--out", str(out), "--json")[0] == 0
    assert ds.dataset(out / "records", partitioning="hive").count_rows() == total
    for job in ("audit-time", "latency"):
        _, told, _ = run(job, "--topic", "t", "--json")
        assert json.loads(told)
    for job, *more in (["verify"], ["pinned"], ["lag"], ["compact-plan"]):
        status, _, told = run(job, *more)
        assert status == 2
        assert "this job reads data directories of this machine" in told
        assert "secret" not in told


def test_a_file_uri_is_a_directory_too(tmp_path: Path) -> None:
    log = some_segments(tmp_path)
    known = disordered(log, 4)
    log.close()

    rows = read_all(asked(f"file://{tmp_path}"), ["offset"])

    assert [row["offset"] for row in rows] == [offset for offset, _ in known]
