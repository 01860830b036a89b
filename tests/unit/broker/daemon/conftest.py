"""Tests of this room run on both event loops."""

from tests.support.worlds.both_loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
