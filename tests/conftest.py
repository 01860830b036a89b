"""For all tests: nothing fails because a machine is slow, or because of what other tests logged."""

import pytest
from hypothesis import settings

from broker.logs import journal

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(autouse=True)
def _nothing_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of one name are limited by the second, and in most tests that never ends."""
    monkeypatch.setattr(journal, "_windows", {})
