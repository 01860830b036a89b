"""A data directory is wiped: what a tier or a back-up has comes back, and all is compared."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.backup.broker_view import BrokerView
from tests.support.backup.wiped_story import GROUPS, KEYED, PAID, PLAIN, USER, WipedStory, measured
from tests.support.tier.s3_server import S3Server, is_seaweedfs_published, only_aws, seaweedfs
from tests.support.worlds.broker_process import HOROLOG

RECORDS = 3000
SLOWEST = 15
"""A start on a restored directory may take so many times what one on the whole takes, at most: the
machine of a test does other work. `scripts/soak wiped` measures it."""


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    if not is_seaweedfs_published():
        pytest.skip("the package registry has no SeaweedFS for this platform")
    with seaweedfs() as running:
        yield running


def check_it_shows_something(view: BrokerView) -> None:
    partitions = view.partitions
    assert all(each.batches and any(each.by_arrival) for each in partitions.values())
    for at in range(2):
        assert len(partitions[PLAIN, at].batches) > 50
        assert len(partitions[PLAIN, at].by_arrival) > 5
    assert partitions[PAID, 0].aborted
    assert len(partitions[KEYED, 0].batches) < partitions[KEYED, 0].end_offset
    rows = [row for each in partitions.values() for row in each.by_arrival if row is not None]
    exact = [row for row in rows if not row["arrival_is_estimated"]]
    assert len(exact) > len(rows) * 0.9
    assert all(view.committed[group] for group in GROUPS)
    assert view.settings[PLAIN]["max.message.bytes"] == "2000000"
    assert len(view.acls) == 1


@pytest.mark.parametrize("kind", ["directory", "bucket", "bucket, downloaded"])
def test_out_of_a_back_up(server: S3Server, tmp_path: Path, kind: str) -> None:
    story = WipedStory(tmp_path, server, has_tier=False)
    is_directory = kind == "directory"
    place = str(tmp_path / "backup") if is_directory else server.url(f"{tmp_path.name}-backup")
    with story.start() as node:
        story.make_topics(node)
        story.write(node, 0, RECORDS)
        assert story.back_up(place) > 0  # of a broker at work
        story.write(node, RECORDS, RECORDS // 2)
    with story.at_rest() as node:
        before, users = story.view(node), story.users(node)
    check_it_shows_something(before)
    assert story.back_up(place) > 0
    assert story.back_up(place) == 0
    times, node = measured(story, place, is_downloaded=kind != "bucket")
    with node:
        assert story.view(node) == before
        assert story.users(node) == users == [USER]
        story.write(node, 2 * RECORDS, 100)
    assert times.ratio < SLOWEST, times


def test_out_of_a_tier(server: S3Server, tmp_path: Path) -> None:
    story = WipedStory(tmp_path, server, has_tier=True)
    with story.start() as node:
        story.make_topics(node)
        story.write(node, 0, RECORDS)
        story.write(node, RECORDS, RECORDS // 2)
        story.wait_until_copied(node)
    with story.at_rest() as node:
        story.wait_until_copied(node)
        before = story.view(node)
    check_it_shows_something(before)
    times, node = measured(story, story.tier_url, is_downloaded=False)
    with node:
        assert sum(each.stat().st_size for each in story.data.rglob("plain-*/*.log")) == 0
        assert story.view(node) == before
        assert story.users(node) == []
        story.write(node, 2 * RECORDS, 100)
    assert times.ratio < SLOWEST, times


def test_killed_while_a_broker_writes(server: S3Server, tmp_path: Path) -> None:
    """kill -9 of the command, again and again, while records come: the last run has them all."""
    story = WipedStory(tmp_path, server, has_tier=False)
    place = server.url(f"{tmp_path.name}-killed")
    command = [str(HOROLOG), "backup", "--data-dir", str(story.data), "--to", place]
    with story.start() as node:
        story.make_topics(node)
        for number in range(6):
            with only_aws(server.environment):
                running = subprocess.Popen(
                    command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
                )
            story.write(node, number * 400, 400)
            time.sleep(0.1 * number)
            running.send_signal(signal.SIGKILL)
            running.wait()
        story.back_up(place)
        assert story.back_up(place) < 1 << 20
    with story.at_rest() as node:
        before = story.view(node)
    story.back_up(place)
    story.wipe_and_restore(place, "--download")
    with story.at_rest() as node:
        assert story.view(node) == before
