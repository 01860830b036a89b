"""`horolog backup` and `horolog restore` by way of a directory: results, texts and refusals."""

import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.access.store import objects
from broker.access.store.refusals import CreateOnlyIgnored
from broker.cli.main import horolog
from broker.runtime.exit_status import CORRUPT, NOT_USABLE
from broker.security.users_file import FILE_NAME as USERS
from config.topic import TopicConfig
from storage.backup.directory_store import DirectoryStore
from storage.directory.log_manager import LogManager
from storage.directory.topics_file import FILE_NAME as TOPICS
from storage.directory.topics_file import CatalogState, TopicEntry, render
from storage.posix import real_env
from storage.tier.cluster_picture import USERS_FILE
from tests.support.disk.simenv import SeededRng
from tests.support.records.logs import NO_BOUNDS, append, make_durable, records_of
from tests.support.tier.memory_store import MemoryStore

T0 = 1_700_000_000_000
TOPIC_ID = SeededRng(3).uuid()


def make_directory(folder: Path, cluster_id: str = "mine") -> LogManager:
    """A data directory with 30 records of one topic, its broker at work."""
    manager = LogManager(real_env(), str(folder), lambda _: TopicConfig(**NO_BOUNDS))
    manager.open_directory(cluster_id, 1)
    manager.load()
    log = manager.create_log("t", 0, TOPIC_ID, TopicConfig(**NO_BOUNDS))
    for number in range(30):
        append(log, T0 + number, value=b"x" * 200)
    make_durable(log)
    manager.checkpoint()
    (folder / TOPICS).write_bytes(render(CatalogState({"t": TopicEntry(TOPIC_ID, 1)})))
    (folder / USERS).write_text("{}")
    return manager


@pytest.fixture
def data(tmp_path: Path) -> Path:
    make_directory(tmp_path / "data")
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(horolog, [str(each) for each in arguments], standalone_mode=False)


def backed_up(data: Path, place: object, *more: str) -> Result:
    return run("backup", "--data-dir", data, "--to", place, *more)


def test_there_and_back(data: Path, tmp_path: Path) -> None:
    result = backed_up(data, tmp_path / "copy")
    assert result.return_value == 0, result.output
    assert "is backed up, of 1 partition, in" in result.output
    assert "restore --at goes back to" in result.output
    again = backed_up(data, tmp_path / "copy", "--json")
    content = json.loads(again.output)
    assert content["cluster_id"] == "mine"
    assert [each["segments_sent"] for each in content["partitions"]] == [0]
    done = run("restore", "--from", tmp_path / "copy", "--data-dir", tmp_path / "new")
    assert done.return_value == 0, done.output
    assert "when the back-up began, is in it" in done.output
    assert "horolog.tier.url" not in done.output
    manager = LogManager(real_env(), str(tmp_path / "new"), lambda _: TopicConfig(**NO_BOUNDS))
    manager.open_directory("mine", 1)
    manager.load()
    assert [each.timestamp for each in records_of(manager.logs["t", 0])] == [
        T0 + number for number in range(30)
    ]
    assert (tmp_path / "new" / USERS).read_text() == "{}"
    assert oct((tmp_path / "new" / USERS).stat().st_mode)[-3:] == "600"
    manager.close()


def test_it_is_whole_says_verify(data: Path, tmp_path: Path) -> None:
    backed_up(data, tmp_path / "copy")
    proof = run("tier", "verify", "--from", tmp_path / "copy", "--deep")
    assert proof.return_value == 0, proof.output
    log = next((tmp_path / "copy").rglob("*.log"))
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    assert run("tier", "verify", "--from", tmp_path / "copy", "--deep").return_value == CORRUPT


def test_users_may_be_left_out(data: Path, tmp_path: Path) -> None:
    backed_up(data, tmp_path / "copy", "--without-users")
    run("restore", "--from", tmp_path / "copy", "--data-dir", tmp_path / "new")
    assert (tmp_path / "new" / TOPICS).exists()
    assert not (tmp_path / "new" / USERS).exists()


def test_the_directory_may_be_for_reading_only(data: Path, tmp_path: Path) -> None:
    for folder in (data / "t-0", data):
        folder.chmod(0o500)
    before = {each: each.stat().st_mtime_ns for each in data.rglob("*")}
    try:
        result = backed_up(data, tmp_path / "copy")
    finally:
        data.chmod(0o700)
        (data / "t-0").chmod(0o700)
    assert result.return_value == 0, result.output
    assert {each: each.stat().st_mtime_ns for each in data.rglob("*")} == before


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("{data}/inside", "are not apart"),
        ("{data}/..", "are not apart"),
        ("{data}", "are not apart"),
        ("ftp://host/place", "s3://"),
        ("{other}", "there is mine"),
        ("/proc/nothing", "failed"),
    ],
)
def test_places_that_are_refused(data: Path, tmp_path: Path, place: str, reason: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("")
    result = backed_up(data, place.format(data=data, other=other))
    assert result.return_value == NOT_USABLE, result.output
    assert reason in result.output
    assert len(result.output.splitlines()) == 1
    assert not (data / "inside").exists()


def test_another_clusters_place_is_named(data: Path, tmp_path: Path) -> None:
    backed_up(data, tmp_path / "copy")
    make_directory(tmp_path / "other", "theirs")
    result = backed_up(tmp_path / "other", tmp_path / "copy")
    assert result.return_value == NOT_USABLE
    assert "belongs to the cluster mine, not to theirs" in result.output


def test_two_at_once(data: Path, tmp_path: Path) -> None:
    first = DirectoryStore.for_writing(real_env().fs, str(tmp_path / "copy"))
    result = backed_up(data, tmp_path / "copy")
    assert result.return_value == NOT_USABLE
    assert "another process holds the lock" in result.output
    first.close()
    assert backed_up(data, tmp_path / "copy").return_value == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is refused to root")
def test_no_rights_at_the_place(data: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    result = backed_up(data, tmp_path / "closed" / "copy")
    assert result.return_value == NOT_USABLE
    assert "Permission denied" in result.output


def test_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = backed_up(tmp_path / "empty", tmp_path / "copy")
    assert result.return_value == NOT_USABLE
    assert "no data directory" in result.output


def test_a_damaged_log_has_a_status(data: Path, tmp_path: Path) -> None:
    log = next((data / "t-0").glob("*.log"))
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    result = backed_up(data, tmp_path / "copy")
    assert result.return_value == CORRUPT
    assert "t-0: not copied, what the place had of it stays" in result.output


def test_a_store_that_makes_a_name_twice_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Careless(MemoryStore):
        def put_new(self, key: str, data: object) -> None:
            self.objects[key] = bytes(data)  # type: ignore[call-overload]

    monkeypatch.setattr(objects, "open_store", lambda url, *, allow_http: Careless())
    result = backed_up(data, "s3://bucket/prefix")
    assert result.return_value == NOT_USABLE
    assert "makes an object twice" in result.output
    assert issubclass(CreateOnlyIgnored, Exception)


def test_a_rate_is_kept(data: Path, tmp_path: Path) -> None:
    """The first bytes need not wait; those that follow a second's worth do."""
    assert backed_up(data, tmp_path / "fast").return_value == 0
    sent = sum(each.stat().st_size for each in (tmp_path / "fast").rglob("*.log"))
    began = time.monotonic()
    assert backed_up(data, tmp_path / "slow", "--max-rate", f"{sent}B").return_value == 0
    assert time.monotonic() - began >= 1.0


@pytest.mark.parametrize("rate", ["fast", "1B", "-1"])
def test_a_rate_is_a_size(data: Path, tmp_path: Path, rate: str) -> None:
    result = backed_up(data, tmp_path / "copy", "--max-rate", rate)
    assert rate in str(result.exception)
    assert not (tmp_path / "copy").exists()


def test_keep_is_a_duration(data: Path, tmp_path: Path) -> None:
    result = backed_up(data, tmp_path / "copy", "--keep", "soon")
    assert "soon" in str(result.exception)
    assert not (tmp_path / "copy").exists()


def test_the_name_that_storage_repeats_is_that_of_its_owner() -> None:
    assert USERS_FILE == USERS
