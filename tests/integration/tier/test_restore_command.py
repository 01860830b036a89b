"""`horolog restore` out of a real object store, by the command as it is installed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from storage.posix import real_env
from tests.support.records.logs import append
from tests.support.tier.restore_world import clock_of, started_in, take_picture
from tests.support.tier.s3_server import S3Server, is_seaweedfs_published, only_aws, seaweedfs
from tests.support.tier.tier_world import KEYS, TierWorld

T0 = 1_700_000_000_000
COMMAND = (sys.executable, "-m", "broker", "restore")


def restored_by_command(server: S3Server, prefix: str, folder: Path) -> Any:
    """Restores a prefix of that store; the JSON that the command has written."""
    with only_aws(server.environment):
        environment = dict(os.environ)
    arguments = ["--from", server.url(prefix), "--data-dir", str(folder), "--json"]
    found = subprocess.run(
        [*COMMAND, *arguments], env=environment, capture_output=True, timeout=60, check=False
    )
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_a_broker_on_the_restored_directory_has_the_records(tmp_path: Path) -> None:
    if not is_seaweedfs_published():
        pytest.skip("the package registry has no SeaweedFS for this platform")
    world = TierWorld()
    for number in range(30):
        append(world.log, T0 + number, value=b"%d" % number * 100)
        clock_of(world).advance(50)
    world.log.roll()
    world.copy_all()
    take_picture(world)
    prefix, folder = f"test/{uuid4().hex}", tmp_path / "data"
    with seaweedfs() as server:
        store = server.open(prefix)
        for key, data in world.store.objects.items():
            store.put_new(key, data)
        found = restored_by_command(server, prefix, folder)
        assert found["partitions"][0]["log_end_offset"] == 30
        expected = [bytes(each.value or b"") for each in world.records()]
        manager = started_in(real_env(), str(folder), store)
        world.log = manager.logs[KEYS.topic, KEYS.partition]
        assert [bytes(each.value or b"") for each in world.records()] == expected
        manager.close()
