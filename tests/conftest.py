"""For all tests: nothing fails because a machine is slow, or because of what other tests logged."""

import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from broker.runtime.event_log import journal

settings.register_profile("fast", deadline=None, max_examples=50)
settings.register_profile("full", deadline=None)
settings.load_profile("fast")

ROOT = Path(__file__).resolve().parents[1]
ALONE = tuple((ROOT / "tests" / "alone.txt").read_text().split())
"""What measures time, or a machine's disk and memory."""
LONG = tuple(re.findall(r"^[^#\s]\S*", (ROOT / "tests" / "long.txt").read_text(), re.MULTILINE))
"""What takes minutes, where shorter tests see most of what it sees; or asks a real Kafka once more
what it was asked before. How their ids begin.
"""
HEAVY = {
    "spark": r"\bspark: |pyspark|support\.spark\.(cluster_driver|spark_|stream_driver)",
    "kafka": r"mark\.kafka|kafka_oracle|java_programs",
    "browser": r"support\.page\.browser",
}
"""What a module says that starts a Spark, a Java machine or a browser: one of each at a time."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Gives `ALONE` and `LONG` their marks; what one core does alone begins first: it ends last."""
    for item in items:
        if item.nodeid.startswith(ALONE):
            item.add_marker("alone")
        if item.nodeid.startswith(LONG):
            item.add_marker("long")
    yield  # those that are not asked for are left out
    items.sort(key=lambda item: _group_of(item.nodeid.partition("::")[0]).startswith("tests/"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Gives a module to one core, and all that are `HEAVY` in one way to one core."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group_of(nodeid.partition("::")[0])

    return ByModule(config, log)


@cache
def _group_of(path: str) -> str:
    if path.startswith("tests/integration/containers/"):
        return "containers"
    text = (ROOT / path).read_text()
    return next((name for name, sign in HEAVY.items() if re.search(sign, text)), path)


@pytest.fixture(autouse=True)
def _nothing_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of one name are limited by the second, and in most tests that never ends."""
    monkeypatch.setattr(journal, "_windows", {})


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """A command that runs in our process keeps what it loads from being collected."""
    yield
    gc.unfreeze()
