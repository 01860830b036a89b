"""Metrics of a disk that does not answer: all others are told."""

import errno
from dataclasses import replace
from pathlib import Path

from broker.metrics.scrape import Scrape
from storage.errors import DiskError
from storage.posix import PosixFileSystem, real_env
from tests.support.worlds.app import make_broker


class GoneDisk(PosixFileSystem):
    """Of a directory that was unmounted, or whose file system gave up."""

    def free_bytes(self, path: str) -> int:
        raise DiskError(path, "statvfs", "Input/output error", errno.EIO)


async def test_a_disk_that_does_not_say_what_is_free_hides_no_other_metric(tmp_path: Path) -> None:
    broker = make_broker(tmp_path, env=replace(real_env(), fs=GoneDisk()))
    _, text = Scrape(broker.services).text()
    assert b"\nhorolog_fsync_errors_total 0.0\n" in text
    assert b"\nhorolog_disk_free_bytes " not in text
