"""For all tests: nothing fails because a machine is slow, or because of what other tests logged."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from broker.runtime.event_log import journal

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _nothing_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of one name are limited by the second, and in most tests that never ends."""
    monkeypatch.setattr(journal, "_windows", {})


@pytest.fixture(autouse=True)
def _nothing_stays_frozen() -> Iterator[None]:
    """A command that runs in our process keeps what it loads from being collected."""
    yield
    gc.unfreeze()
