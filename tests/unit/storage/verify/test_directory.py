"""A proof accepts what the log wrote, finds whatever was changed, and changes nothing."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.gaps import NO_EDGES
from storage.errors import StorageError
from storage.posix import real_env
from storage.verify.directory import NoDataDirectory, survey, verify_partition
from storage.verify.report import PartitionReport
from storage.zones.gaps import GAP_BITS, gap_flags
from storage.zones.rows import iter_rows, pack_row
from tests.support.disk.read_only import ReadOnlyFileSystem
from tests.support.records.logs import append, open_log
from tests.support.records.partition_samples import old_log
from tests.support.records.transactional_samples import (
    write_compacted_transaction,
    write_transactions,
)

CLEAN_MARK = ".kafka_cleanshutdown"
SMALL: dict[str, Any] = {
    "segment_bytes": 15_000,
    "index_interval_bytes": 400,
    "horolog_zone_bytes": 4096,
}


def verify(directory: Path) -> PartitionReport:
    """The proof of the one partition there, on a file system that cannot be written."""
    fs: Any = ReadOnlyFileSystem(real_env().fs)
    whole = survey(fs, str(directory))
    (path,) = whole.partitions
    return verify_partition(fs, path, whole, lambda _: None)


def write_log(path: Path, *, in_order: bool = False, **settings: Any) -> None:
    """Disordered, dirty and missing times in all codecs; some of it by an idempotent producer.

    `in_order`: within each batch the last record has the largest time.
    """
    chance = random.Random(7)
    log = open_log(real_env(), path=str(path), **{**SMALL, **settings})
    sequence = 0
    for i in range(400):
        times = [1000 + i + chance.randrange(-200, 200) for _ in range(4)]
        if chance.random() < 0.05:
            times[1] = -1
        if chance.random() < 0.02:
            times[0] = 10**13 + i
        if in_order:
            times.sort()
        numbers: dict[str, int] = {}
        if i % 3:
            numbers = {"producer_id": 8, "producer_epoch": 0, "base_sequence": sequence}
            sequence += len(times)
        append(log, *times, codec=chance.choice(list(Codec)), **numbers)
    log.close()


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with one partition of several segments, cleanly closed."""
    top = tmp_path_factory.mktemp("verify")
    write_log(top / "t-0", in_order=True)
    (top / CLEAN_MARK).write_text("{}")
    return top


@pytest.fixture
def data(pristine: Path, tmp_path: Path) -> Path:
    """A copy to be spoilt."""
    copy = tmp_path / "data"
    shutil.copytree(pristine, copy)
    return copy


@pytest.mark.parametrize("entry", ["max", "next"])
@pytest.mark.parametrize("time_type", ["CreateTime", "LogAppendTime"])
def test_what_the_log_wrote_is_proved(tmp_path: Path, entry: str, time_type: str) -> None:
    write_log(tmp_path / "t-0", horolog_time_index_entry=entry, message_timestamp_type=time_type)
    (tmp_path / CLEAN_MARK).write_text("{}")
    report = verify(tmp_path)
    proved = report.proved
    assert (report.verdict, report.findings) == ("sound", [])
    assert (proved.segments, proved.records, report.end_offset) > (2, 1599, 1599)
    assert min(proved.offset_entries, proved.zones, proved.snapshots) > 2
    read_as, other = proved.time_entries_max, proved.time_entries_next
    if entry == "next":
        read_as, other = other, read_as
    assert read_as > 2
    assert not other


def test_a_directory_without_times_is_sound_in_either_meaning(tmp_path: Path) -> None:
    for number, entry in enumerate(("max", "next")):
        log = open_log(
            real_env(), path=str(tmp_path / f"{entry}-0"), horolog_time_index_entry=entry
        )
        append(log, -1, -1)
        log.close()
        assert verify(tmp_path / f"{entry}-0").verdict == "sound", number


def test_nothing_in_the_directory_changes(data: Path) -> None:
    before = {path: (path.read_bytes(), path.stat()) for path in data.rglob("*") if path.is_file()}
    verify(data)
    after = {path: (path.read_bytes(), path.stat()) for path in data.rglob("*") if path.is_file()}
    assert [(p, c, s.st_mtime_ns) for p, (c, s) in before.items()] == [
        (p, c, s.st_mtime_ns) for p, (c, s) in after.items()
    ]


def flips(path: Path, count: int) -> Iterator[int]:
    """Flips a bit of the file at a time, and gives its place."""
    good = path.read_bytes()
    chance = random.Random(3)
    for _ in range(count):
        bad = bytearray(good)
        at = chance.randrange(len(bad))
        bad[at] ^= 1 << chance.randrange(8)
        path.write_bytes(bad)
        yield at
        path.write_bytes(good)


@pytest.mark.parametrize(
    ("suffix", "verdicts"),
    [
        (".index", {"wrong"}),
        (".timeindex", {"wrong"}),
        (".zones", {"wrong"}),
        (".snapshot", {"wrong"}),
        (".log", {"damaged", "wrong"}),
    ],
)
def test_any_bit_that_flips_is_found(data: Path, suffix: str, verdicts: set[str]) -> None:
    files = sorted(path for path in (data / "t-0").iterdir() if path.suffix == suffix)
    found = {verify(data).verdict for _ in flips(files[1], 25)}
    assert found <= verdicts


def test_a_gap_in_which_a_record_lies_is_found(tmp_path: Path) -> None:
    now = real_env().clock.now_ms()
    log = open_log(real_env(), path=str(tmp_path / "t-0"))
    for _ in range(3):
        append(log, now - 5000, now - 100, now + 10**9, codec=Codec.LZ4)
    append(log, -1)
    log.close()
    (tmp_path / CLEAN_MARK).write_text("{}")
    (path,) = (tmp_path / "t-0").glob("*.zones")
    ((*row, _),) = iter_rows(path.read_bytes())
    assert row[3] & GAP_BITS
    assert verify(tmp_path).verdict == "sound"

    edges = NO_EDGES._replace(first=row[4], last=row[4] + 1)
    row[3] = row[3] & ~GAP_BITS | gap_flags(row[4], row[5], edges)
    path.write_bytes(pack_row(tuple(row)))

    report = verify(tmp_path)
    assert [each.what for each in report.findings] == [
        f"zone 0 (offset 0): 1 times at offset {offset} are where it says there is none"
        for offset in (0, 3, 6)
    ]


def test_a_bit_of_an_epoch_in_a_batch_is_outside_the_crc_and_found(data: Path) -> None:
    log = min((data / "t-0").glob("*.log"))
    spoilt = bytearray(log.read_bytes())
    spoilt[15] ^= 4
    log.write_bytes(spoilt)
    report = verify(data)
    assert [(each.severity, each.file) for each in report.findings] == [
        ("wrong", "leader-epoch-checkpoint")
    ]


@pytest.mark.parametrize("text", ["0\n1\n0 90000\n", "0\n1\n3 0\n", "0\n2\n0 0\n1 40\n", "0\n7\n"])
def test_epochs_that_the_log_does_not_have_are_found(data: Path, text: str) -> None:
    (data / "t-0" / "leader-epoch-checkpoint").write_text(text)
    assert verify(data).verdict == "wrong"


def test_epochs_that_were_forgotten_are_a_note(data: Path) -> None:
    """As a Kafka leaves them that was killed soon after it deleted records."""
    (data / "t-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 3\n")
    report = verify(data)
    assert report.verdict == "sound"
    assert "records from 0 to before 3 have no epoch" in report.findings[0].what


@pytest.mark.parametrize(
    ("suffix", "kept"), [(".index", 16), (".timeindex", 24), (".zones", 52), (".timeindex", 0)]
)
def test_an_index_that_lacks_its_end(data: Path, suffix: str, kept: int) -> None:
    """A search would begin early or know no upper bound: a missing time entry is a fault."""
    first = min(path for path in (data / "t-0").iterdir() if path.suffix == suffix)
    first.write_bytes(first.read_bytes()[:kept])
    assert verify(data).verdict == ("sound" if suffix == ".index" else "wrong")


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".zones"])
def test_an_index_that_is_missing_is_no_fault(data: Path, suffix: str) -> None:
    min(path for path in (data / "t-0").iterdir() if path.suffix == suffix).unlink()
    report = verify(data)
    assert report.verdict == "sound"
    assert len(report.findings) == (suffix != ".zones")


@pytest.mark.parametrize("tail", [b"torn", bytes(300), b"\x01" * 300])
def test_a_torn_tail_is_damage_unless_somebody_may_be_writing(data: Path, tail: bytes) -> None:
    last = max((data / "t-0").glob("*.log"))
    with last.open("ab") as file:
        file.write(tail)
    report = verify(data)
    assert report.verdict == "damaged"
    assert f"{len(tail)} bytes of the segment were not proved" in report.findings[0].what
    (data / CLEAN_MARK).unlink()
    report = verify(data)
    assert report.verdict == "sound"
    assert "under way, or torn by a crash" in report.findings[0].what


def test_damage_before_sound_batches_is_damage_even_then(data: Path) -> None:
    (data / CLEAN_MARK).unlink()
    last = max((data / "t-0").glob("*.log"))
    spoilt = bytearray(last.read_bytes())
    spoilt[300] ^= 255
    last.write_bytes(spoilt)
    report = verify(data)
    assert report.verdict == "damaged"
    assert "sound ones follow at" in report.findings[0].what


def test_findings_of_one_file_are_bounded(data: Path) -> None:
    index = min((data / "t-0").glob("*.index"))
    base = int.from_bytes(index.read_bytes()[:4])
    entries = b"".join((base + i).to_bytes(4) + (i * 9 + 1).to_bytes(4) for i in range(500))
    index.write_bytes(entries)
    report = verify(data)
    assert len(report.findings) == 20
    assert report.unlisted[index.name] > 400


def test_a_partition_alone_can_be_proved(data: Path) -> None:
    assert verify(data / "t-0").verdict == "sound"


def test_a_log_that_is_being_written_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    log = open_log(real_env(), path=str(tmp_path / "t-0"), **SMALL)
    for i in range(150):
        append(log, 1000 + i, value=bytes(200))
        if not i % 10:
            report = verify(tmp_path)
            assert (report.verdict, report.end_offset) == ("sound", i + 1)
    log.close()


def test_transactions_and_producers_are_proved(tmp_path: Path) -> None:
    write_transactions(tmp_path / "t-0")
    (tmp_path / CLEAN_MARK).write_text("{}")
    report = verify(tmp_path)
    notes = {finding.severity for finding in report.findings}
    assert (report.verdict, notes) == ("sound", {"note"})  # it has no indexes
    assert report.proved.aborted_transactions == 2
    assert report.proved.snapshots == 1


@pytest.mark.parametrize("entry", [0, 1])
def test_an_aborted_transaction_that_the_index_lacks_or_tells_wrongly(
    tmp_path: Path, entry: int
) -> None:
    write_transactions(tmp_path / "t-0")
    index = tmp_path / "t-0" / f"{0:020d}.txnindex"
    good = index.read_bytes()
    index.write_bytes(good[34:] if entry == 0 else good[:34])
    report = verify(tmp_path / "t-0")
    assert "its records would be read" in report.findings[0].what
    for field in range(1, 5):
        bad = bytearray(good)
        bad[entry * 34 + 2 + field * 8 - 1] ^= 1
        index.write_bytes(bad)
        assert verify(tmp_path / "t-0").verdict == "wrong"


@pytest.mark.parametrize(("first_offset", "verdict"), [(0, "sound"), (2, "sound"), (3, "wrong")])
def test_a_transaction_whose_first_records_were_compacted_away(
    tmp_path: Path, first_offset: int, verdict: str
) -> None:
    write_compacted_transaction(tmp_path / "t-0", first_offset)
    (tmp_path / CLEAN_MARK).write_text("{}")
    assert verify(tmp_path).verdict == verdict


def test_a_snapshot_that_the_log_contradicts(tmp_path: Path) -> None:
    write_transactions(tmp_path / "t-0")
    snapshot = tmp_path / "t-0" / f"{14:020d}.snapshot"
    snapshot.rename(snapshot.with_name(f"{12:020d}.snapshot"))
    report = verify(tmp_path / "t-0")
    (wrong,) = [each for each in report.findings if each.severity == "wrong"]
    assert wrong.what.startswith("producer 3: epoch 0, sequence 1 at offset 13")
    assert wrong.what.endswith("the log: nothing of it")


def test_checkpoints_beyond_the_end_are_found(data: Path) -> None:
    for name in ("log-start-offset", "replication-offset", "recovery-point-offset"):
        (data / f"{name}-checkpoint").write_text("0\n1\nt 0 99999\n")
        report = verify(data)
        assert report.verdict == "wrong"
        (data / f"{name}-checkpoint").unlink()


def test_a_checkpoint_that_cannot_be_read_is_told(data: Path) -> None:
    (data / "recovery-point-offset-checkpoint").write_text("7\n")
    assert "recovery-point" in survey(real_env().fs, str(data)).damage[0]


def test_old_formats_and_left_overs_are_notes(data: Path) -> None:
    partition = data / "t-0"
    (partition / f"{90000:020d}.log").write_bytes(old_log())
    (partition / f"{0:020d}.log.deleted").write_bytes(b"x")
    (partition / "horolog-damaged").write_text("7\n")
    report = verify(data)
    assert [finding.severity for finding in report.findings] == ["note"] * 3
    assert "message format 0" in report.findings[-1].what


def test_a_header_that_lies_about_its_largest_time(tmp_path: Path) -> None:
    from protocol.records.batch import set_max_timestamp

    batch = build_batch([(5, b"k", b"v")], leader_epoch=0)
    set_max_timestamp(batch, 0, len(batch), 77)
    partition = tmp_path / "t-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(batch)
    report = verify(tmp_path)
    assert "states the largest time 77, its records have 5" in report.findings[0].what


@pytest.mark.parametrize(
    "make", [lambda path: None, lambda path: (path / "x-0").mkdir(parents=True)]
)
def test_what_is_no_data_directory_is_refused(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "other")
    with pytest.raises(StorageError) as caught:
        survey(real_env().fs, str(tmp_path / "other"))
    assert isinstance(caught.value, NoDataDirectory) == (tmp_path / "other").exists()
