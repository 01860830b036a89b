"""All clients of the matrix, on a fleet, through a node that owns nothing; a leader is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fleet.postgres_server import is_postgres_published
from tests.support.tier.s3_server import is_seaweedfs_published

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).resolve().parents[3]
STORY = "tests/conformance/test_client_matrix.py"
NONE_FAILED = 0


def test_they_share_take_over_and_go_on() -> None:
    if not is_postgres_published() or not is_seaweedfs_published():
        pytest.skip("the package registry has no such engine for this machine")
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", STORY],
        env={**os.environ, "HOROLOG_CONFORMANCE_NODE": "fleet", "PYTEST_ADDOPTS": ""},
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=380,
    )  # fmt: skip
    assert told.returncode == NONE_FAILED, told.stdout[-6000:]
