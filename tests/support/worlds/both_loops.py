"""Both event loops: the one that production prefers and the one of the standard library."""

import asyncio
from collections.abc import Callable, Mapping

import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every asynchronous test of a folder whose conftest has this runs on each."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
