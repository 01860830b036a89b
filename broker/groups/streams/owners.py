"""Processes that have tasks now, or have yet to give them back.

A task is active in one process at most; a process has a task in one role only.
"""

from broker.groups.streams.tasks import HeldTasks, TaskId, Tasks

Owners = dict[TaskId, set[str]]


class TaskOwners:
    """Processes by task and role."""

    def __init__(self) -> None:
        """Nobody has a task."""
        self.active: dict[TaskId, str] = {}
        self._standby: Owners = {}
        self._warmup: Owners = {}

    def add(self, held: HeldTasks, process_id: str) -> None:
        """A process has these."""
        for name, indexes in held.active.items():
            self.active.update((TaskId(name, index), process_id) for index in indexes)
        for owners, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
            for task in _ids(tasks):
                owners.setdefault(task, set()).add(process_id)

    def remove(self, held: HeldTasks, process_id: str) -> None:
        """A process has these no more."""
        for name, indexes in held.active.items():
            for index in indexes:
                if self.active.get(TaskId(name, index)) == process_id:
                    del self.active[TaskId(name, index)]
        for owners, tasks in ((self._standby, held.standby), (self._warmup, held.warmup)):
            for task in _ids(tasks):
                processes = owners.get(task, set())
                processes.discard(process_id)
                if not processes:
                    owners.pop(task, None)

    def keep_active_out(self, task: TaskId, process_id: str) -> bool:
        """True while a process cannot get an active task: it, or another one, has it still."""
        return task in self.active or self._copies(task, process_id)

    def keep_copy_out(self, task: TaskId, process_id: str) -> bool:
        """True while a process cannot get a standby or a warm-up: it has the task still."""
        return self.active.get(task) == process_id or self._copies(task, process_id)

    def _copies(self, task: TaskId, process_id: str) -> bool:
        return process_id in self._standby.get(task, ()) or process_id in self._warmup.get(task, ())


def _ids(tasks: Tasks) -> list[TaskId]:
    return [TaskId(name, index) for name, indexes in tasks.items() for index in indexes]
