"""`horolog restore`: what it makes, says and refuses; the store is in memory."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from broker.access.store import objects
from broker.access.store.refusals import BadStoreUrl
from broker.cli.main import horolog
from broker.cli.tier.restored import MOST_NAMED, content_of, print_restored
from broker.quotas.quota_file import FILE_NAME as QUOTAS
from broker.runtime.exit_status import CORRUPT, NOT_USABLE
from broker.security.acl_file import FILE_NAME as ACLS
from broker.topics.names import INTERNAL_TOPICS
from broker.topics.stored_settings import FILE_NAME as SETTINGS
from storage.directory.producer_ids_file import FILE_NAME as PRODUCER_IDS
from storage.directory.topics_file import FILE_NAME as TOPICS
from storage.files.layout import RESTORING_FILE
from storage.posix import real_env
from storage.tier import cluster_picture, restore
from storage.tier.manifests.manifest import Manifest
from storage.tier.names import CLUSTER, numbered
from storage.tier.restore import RestoredPartition
from tests.support.records.logs import append, records_of
from tests.support.tier.restore_world import clock_of, started_in, take_picture
from tests.support.tier.tier_world import KEYS, CountingStore, TierWorld

URL = "s3://bucket/prefix"
T0 = 1_700_000_000_000


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> CountingStore:
    """Thirty records of one topic, none of a partition 1, as `URL` has them."""
    world = TierWorld()
    for number in range(30):
        append(world.log, T0 + number, value=b"x" * 200)
        clock_of(world).advance(50)
    world.log.roll()
    world.copy_all()
    take_picture(world, partitions=2)

    def opened(url: str, *, allow_http: bool) -> CountingStore:
        assert (url, allow_http) == (URL, False)
        return world.store

    monkeypatch.setattr(objects, "open_store", opened)
    return world.store


def run(folder: Path, *arguments: str) -> Result:
    given = ["restore", "--from", URL, "--data-dir", str(folder), *arguments]
    return CliRunner().invoke(horolog, given, standalone_mode=False)


def test_it_says_what_came_back_and_what_the_broker_needs(
    store: CountingStore, tmp_path: Path
) -> None:
    result = run(tmp_path / "new")
    assert result.return_value == 0, result.output
    assert "in the store" in result.output
    assert "Of 1 partitions nothing was copied" in result.output
    assert "Topics and settings are of 2023-11-14T" in result.output
    assert f"horolog.tier.url={URL}, node.id=1" in result.output
    assert {each.name for each in (tmp_path / "new").iterdir()} >= {
        "meta.properties",
        "t-0",
        TOPICS,
    }
    manager = started_in(real_env(), str(tmp_path / "new"), store)
    assert manager.cluster_id == "cluster"
    assert manager.logs[KEYS.topic, 0].snapshot.log_end_offset == 30
    manager.close()


@pytest.mark.usefixtures("store")
def test_a_downloaded_directory_needs_no_store(tmp_path: Path) -> None:
    result = run(tmp_path, "--download")
    assert result.return_value == 0, result.output
    assert "in the directory" in result.output
    assert "horolog.tier.url" not in result.output
    manager = started_in(real_env(), str(tmp_path))
    assert len(records_of(manager.logs[KEYS.topic, 0])) == 30
    manager.close()


@pytest.mark.usefixtures("store")
def test_programs_get_json(tmp_path: Path) -> None:
    content = json.loads(run(tmp_path, "--json").output)
    assert content["cluster_id"] == "cluster"
    one, other = content["partitions"]
    assert (one["log_start_offset"], one["log_end_offset"]) == (0, 30)
    assert one["copied"]["ms"] == T0 + 30 * 50
    assert other["copied"] is None


@pytest.mark.usefixtures("store")
def test_a_time_may_be_given_as_date_or_number(tmp_path: Path) -> None:
    assert run(tmp_path / "a", "--at", "2023-11-20").return_value == 0
    assert run(tmp_path / "b", "--at", str(T0 + 10**9)).return_value == 0
    early = run(tmp_path / "c", "--at", "2023-01-01T00:00:00Z")
    assert early.return_value == NOT_USABLE
    assert "from that time or before" in early.output
    assert not (tmp_path / "c").exists()
    wrong = run(tmp_path / "d", "--at", "yesterday")
    assert "'yesterday' is no time" in str(wrong.exception)


def test_partitions_that_are_not_of_the_moment_are_listed_with_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifest = Manifest(5, *KEYS, log_start_offset=123, written_ms=T0)
    late = RestoredPartition(KEYS, manifest, False, True, starts_later=True)
    newer = [
        RestoredPartition(KEYS._replace(topic="compacted", partition=n), manifest, True, True,
                          is_later=True)
        for n in range(MOST_NAMED + 2)
    ]  # fmt: skip
    plain = RestoredPartition(KEYS._replace(topic="plain"), manifest, False, True)
    picture = cluster_picture.Picture(1, T0, cluster_picture.Content("cluster", 1, {}))
    done = restore.Restored(picture, (late, *newer, plain))
    print_restored(done, URL, T0 + 1000)
    lines = capsys.readouterr().out.splitlines()
    at = next(n for n, line in enumerate(lines) if "removed records since then" in line)
    assert lines[at].startswith("Of 1 partitions retention or DeleteRecords")
    assert lines[at + 1] == "  t-0: 123"
    assert lines[at + 2].startswith("Of 12 partitions compaction replaced segments")
    assert lines[at + 3].startswith("  compacted-0: 2023-11-14")
    assert lines[at + 3 + MOST_NAMED] == "  and 2 more"
    assert "log.segment.delete.delay.ms" in lines[at + 4 + MOST_NAMED]
    assert not any("plain-0" in line for line in lines)
    found = content_of(done)["partitions"]
    assert [each["starts_later"] for each in found] == [True] + [False] * 13
    assert [each["is_later"] for each in found] == [False] + [True] * 12 + [False]


def test_refusals_have_a_status_and_a_line(
    store: CountingStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").write_text("")
    full = run(tmp_path)
    assert full.return_value == NOT_USABLE
    assert "it is not empty, there is mine" in full.output
    store.objects[numbered(CLUSTER, 1)] += b" no"
    damaged = run(tmp_path / "new")
    assert damaged.return_value == CORRUPT
    assert "no picture of a cluster" in damaged.output

    def refused(url: str, *, allow_http: bool) -> CountingStore:
        raise BadStoreUrl(f"{url} with {allow_http} is none")

    monkeypatch.setattr(objects, "open_store", refused)
    assert run(tmp_path / "new").return_value == NOT_USABLE
    assert not (tmp_path / "new").exists()


def test_one_that_is_cut_off_is_run_once_more(store: CountingStore, tmp_path: Path) -> None:
    key = next(key for key in store.objects if key.endswith(".side"))
    side = store.objects.pop(key)
    assert run(tmp_path).return_value == CORRUPT
    assert (tmp_path / RESTORING_FILE).exists()
    store.objects[key] = side
    assert run(tmp_path).return_value == 0
    assert not (tmp_path / RESTORING_FILE).exists()


def test_names_that_storage_repeats_are_those_of_their_owners() -> None:
    assert cluster_picture.FILES == (TOPICS, SETTINGS, QUOTAS, ACLS, PRODUCER_IDS)
    assert (cluster_picture.TOPICS_FILE, cluster_picture.SETTINGS_FILE) == (TOPICS, SETTINGS)
    assert restore.STATE_TOPICS == INTERNAL_TOPICS
