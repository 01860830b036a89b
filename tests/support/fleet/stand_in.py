"""A fleet in the place of one broker: the client tests meet it through a node that owns nothing.

For tests that start, stop and kill a node: what they kill is a node that owns something, and the
start after that is that node's.
"""

import atexit
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.fleet.brokers import FleetOfBrokers, engines
from tests.support.worlds.broker_process import HOROLOG

OWNERS, IDLE = (1, 2, 3), 4
TOPICS_OF_STATE = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}


class _Engines:
    """PostgreSQL and a store, once in a process."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self.fleets: dict[Path, FleetStandIn] = {}
        self._running: tuple[object, object] | None = None

    def fleet(self, folder: Path) -> FleetOfBrokers:
        if self._running is None:
            self._running = self._stack.enter_context(engines())
            atexit.register(self._stack.close)
            atexit.register(self.end)  # before the engines, also when a test has failed
        return FleetOfBrokers(folder, *self._running)  # type: ignore[arg-type]

    def end(self) -> None:
        """All brokers that still run."""
        for each in list(self.fleets.values()):
            each.stop()


_ENGINES = _Engines()


class FleetStandIn:
    """Three nodes that own all, and one to talk to, with the manners of a `NodeProcess`."""

    def __init__(self, folder: Path, settings: Mapping[str, str], listen: str | None) -> None:
        """Returns when the nodes run and the fourth one owns nothing."""
        self._settings = {**TOPICS_OF_STATE, **settings}
        self._fleet = _ENGINES.fleet(folder)
        self._next = 0
        self._down: int | None = None
        for node_id in OWNERS:
            self._fleet.start(node_id, self._settings)
        self._idle = self._fleet.start(IDLE, self._settings, listen=listen)
        self._run("drain", str(IDLE))

    @property
    def facts(self) -> Mapping[str, str]:
        """The talking node's."""
        return self._idle.facts

    @property
    def bootstrap(self) -> str:
        """HOST:PORT of the node that owns nothing."""
        return self._idle.bootstrap

    @property
    def pid(self) -> int:
        """The talking node's."""
        return self._idle.pid

    def go_on(self) -> Self:
        """The node that was killed begins again."""
        if self._down is not None:
            self._fleet.start(self._down, self._settings)
            self._down = None
        return self

    def kill(self) -> None:
        """One of the owners, while they run."""
        if self._down is None and self._fleet.running:
            self._down = OWNERS[self._next % len(OWNERS)]
            self._next += 1
            self._fleet.kill(self._down)

    def stop(self) -> int:
        """All of them."""
        self._fleet.end()
        for folder, each in list(_ENGINES.fleets.items()):
            if each is self:
                del _ENGINES.fleets[folder]
        return 0

    def _run(self, *arguments: str) -> None:
        command = [str(HOROLOG), "fleet", *arguments, "--url", self._fleet.url]
        subprocess.run(command, check=True, capture_output=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._down is None:
            self.stop()


def start_fleet(
    data_dir: Path, settings: Mapping[str, str] | None = None, *, listen: str | None = None
) -> FleetStandIn:
    """In place of `start_broker`: a new fleet, or one more start of that on the same directory."""
    found = _ENGINES.fleets.get(data_dir)
    if found is None:
        data_dir.mkdir(parents=True, exist_ok=True)
        found = _ENGINES.fleets[data_dir] = FleetStandIn(data_dir, settings or {}, listen)
    return found.go_on()
