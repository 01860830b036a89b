"""Processes of a streams group while tasks are assigned: their members, and how loaded they are.

A process is an instance of the application; its threads are members. Its load is tasks per member.
"""

import heapq
from collections.abc import Iterable
from itertools import count

from broker.groups.streams.tasks import TaskId


class Process:
    """One process."""

    def __init__(self, process_id: str) -> None:
        """Without members."""
        self.process_id = process_id
        self.counts: dict[str, int] = {}
        """Tasks of each member."""
        self.active: dict[str, list[TaskId]] = {}
        self.standby: dict[str, list[TaskId]] = {}
        self._tasks: set[TaskId] = set()
        self._total = 0
        self._by_load: list[tuple[int, int, str]] = []
        self._order = count()

    def add_member(self, member_id: str) -> None:
        """A member without tasks."""
        self.counts[member_id] = 0
        self._queue(member_id)

    @property
    def load(self) -> float:
        """Tasks per member."""
        return self._total / len(self.counts)

    def has(self, task: TaskId) -> bool:
        """True when one of its members has the task, in whatever role."""
        return task in self._tasks

    def add(self, member_id: str, task: TaskId, *, is_active: bool) -> int:
        """Gives a task to a member; the number of tasks that it has then."""
        by_member = self.active if is_active else self.standby
        by_member.setdefault(member_id, []).append(task)
        self._tasks.add(task)
        self.counts[member_id] += 1
        self._total += 1
        self._queue(member_id)
        return self.counts[member_id]

    def add_to_least_loaded(self, task: TaskId, *, is_active: bool) -> int:
        """Gives a task to the member with the fewest; the number of tasks that it has then."""
        while self._by_load[0][0] != self.counts[self._by_load[0][2]]:
            heapq.heappop(self._by_load)  # it got more since
        return self.add(self._by_load[0][2], task, is_active=is_active)

    def _queue(self, member_id: str) -> None:
        heapq.heappush(self._by_load, (self.counts[member_id], next(self._order), member_id))


class ByLoad:
    """Processes, the least loaded one first."""

    def __init__(self, processes: Iterable[Process]) -> None:
        """Their loads are as they are now."""
        self._order = count()
        self._heap = [(each.load, next(self._order), each) for each in processes]
        heapq.heapify(self._heap)

    def take(self) -> Process | None:
        """Takes the least loaded process out; None when all are out."""
        return heapq.heappop(self._heap)[2] if self._heap else None

    def put(self, process: Process) -> None:
        """Puts a process back, with its load of now."""
        heapq.heappush(self._heap, (process.load, next(self._order), process))
