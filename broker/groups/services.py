"""The services that groups are coordinated with."""

from asyncio import AbstractEventLoop
from typing import Protocol

from broker.guards.clock_guard import ClockWatch
from broker.runtime.memory_account import MemoryAccount
from broker.state.services import StateServices


class GroupServices(StateServices, Protocol):
    """Used on the event loop."""

    clock_watch: ClockWatch
    loop: AbstractEventLoop
    memory: MemoryAccount
