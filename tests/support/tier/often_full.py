"""Manifests of simulated lives: every third one is full, so that short lives leave some behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from storage.tier.manifests import reading


@contextmanager
def often_full() -> Iterator[None]:
    """Has manifests written so."""
    with patch.object(reading, "FULL_EVERY", 3):
        yield
