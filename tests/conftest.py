"""For all tests: nothing fails because a machine is slow, or because of what other tests logged."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from broker.runtime.event_log import journal

settings.register_profile("fast", deadline=None, max_examples=50)
settings.register_profile("full", deadline=None)
settings.load_profile("fast")

TOGETHER = (
    "tests/conformance/",
    "tests/fault/",
    "tests/integration/",
    "tests/pipeline/",
    "tests/soak/",
)
"""Where the tests of a module share a broker, or a process: they run one after the other."""
ALONE = (
    "tests/integration/test_cli_top.py",
    "tests/integration/test_disk_full.py",
    "tests/integration/test_http_under_attack.py",
    "tests/integration/test_inflating_batches.py",
    "tests/integration/test_memory_at_metrics.py",
    "tests/conformance/test_low_disk_clients.py",
    "tests/soak/",
    "tests/unit/records/test_others_run.py",
)
"""What measures time, or a machine's disk and memory."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On several cores one Spark, one Kafka and one engine of containers run at a time."""
    for item in items:
        path = item.nodeid.partition("::")[0]
        if path.startswith(ALONE):
            item.add_marker("alone")
        if path.startswith(TOGETHER):
            item.add_marker(pytest.mark.xdist_group(_group_of(item, path)))


def _group_of(item: pytest.Item, path: str) -> str:
    if path.startswith("tests/integration/containers/"):
        return "containers"
    if path.startswith("tests/pipeline/") and "spark" in getattr(item, "fixturenames", ()):
        return "spark"
    if item.get_closest_marker("kafka") is not None:
        return "kafka"
    return path


@pytest.fixture(autouse=True)
def _nothing_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of one name are limited by the second, and in most tests that never ends."""
    monkeypatch.setattr(journal, "_windows", {})


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """A command that runs in our process keeps what it loads from being collected."""
    yield
    gc.unfreeze()
