"""Clients of a soak as processes of their own: begun, told to end, heard."""

from dataclasses import dataclass, field
from multiprocessing.context import SpawnContext
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from typing import Any

LOOK_SECONDS = 0.1


@dataclass
class Run:
    """A load that is on: its processes, and where they report."""

    context: SpawnContext
    stop: Event
    processes: dict[str, BaseProcess] = field(default_factory=dict)
    reports: dict[str, Any] = field(default_factory=dict)

    def begin(self, name: str, client: Any, *arguments: object) -> None:
        """Starts `client(*arguments, stop, report)`; it ends with this process."""
        report = self.context.SimpleQueue()
        self.reports[name] = report
        self.processes[name] = self.context.Process(
            target=client, args=(*arguments, self.stop, report), daemon=True
        )
        self.processes[name].start()

    def end(self) -> dict[str, Any]:
        """What each has seen."""
        self.stop.set()
        found = {name: self._heard(name) for name in self.reports}
        for each in self.processes.values():
            each.join(60)
        return found

    def _heard(self, name: str) -> Any:
        report, process = self.reports[name], self.processes[name]
        while report.empty():
            process.join(LOOK_SECONDS)
            if not process.is_alive() and report.empty():
                raise RuntimeError(f"{name} ended with {process.exitcode} and told nothing")
        return report.get()

    @property
    def is_over(self) -> bool:
        """True once each has told what it has seen, or has ended."""
        return all(
            not self.reports[name].empty() or not each.is_alive()
            for name, each in self.processes.items()
        )

    @property
    def is_whole(self) -> bool:
        """True while none has ended."""
        return all(each.is_alive() for each in self.processes.values())
