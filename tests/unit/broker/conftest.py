"""Fixtures of the tests of the broker."""

import pytest

from tests.support.worlds.handler_world import World


@pytest.fixture
async def world() -> World:
    """A broker without network, threads or disk."""
    return World()
