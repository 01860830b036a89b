"""The assignor `sticky` of streams groups: tasks stay where their state is, as far as that is even.

An active task goes to the member that had it, else to one that had it as a standby, else to the
least loaded process. Standbys go where the task was active or a standby, else to the least loaded
process, never to one that has the task already. Warm-ups are not in Kafka 4.3. Rules: Kafka 4.3's
`StickyTaskAssignor`; which of equal members gets one more is not among them.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.groups.streams.configuring import ConfiguredSubtopology
from broker.groups.streams.process import ByLoad, Process
from broker.groups.streams.tasks import TaskId, TaskSet, tasks_of

STICKY = "sticky"


class Runner(NamedTuple):
    """A member as the assignor sees it: its process, and its target so far."""

    process_id: str
    before: TaskSet


class _Seat(NamedTuple):
    process: Process
    member_id: str


def sticky(
    members: Mapping[str, Runner],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    standby_replicas: int,
) -> dict[str, TaskSet]:
    """Targets of all members."""
    return _Assigning(members, subtopologies, standby_replicas).run()


class _Quota:
    """Tasks that a member may have, so that the rest is even among those with room."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self.most = _ceiling(tasks, members)

    def filled(self, count: int) -> None:
        """A member has that many tasks; once that is the quota, the others share the rest."""
        if count == self.most:
            self._members -= 1
            self._tasks -= count
            self.most = _ceiling(self._tasks, self._members)


def _ceiling(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


class _Assigning:
    def __init__(
        self,
        members: Mapping[str, Runner],
        subtopologies: Mapping[str, ConfiguredSubtopology],
        replicas: int,
    ) -> None:
        self._members = members
        self._replicas = replicas
        counts = {key: each.task_count for key, each in subtopologies.items()}
        self._active = _tasks(counts)
        self._stateful = _tasks(
            {key: counts[key] for key, each in subtopologies.items() if each.is_stateful}
        )
        all_tasks = len(self._active) + replicas * len(self._stateful)
        self._active_quota = _Quota(len(self._active), len(members))
        self._quota = _Quota(all_tasks, len(members))
        self._processes: dict[str, Process] = {}
        self._was_active: dict[TaskId, _Seat] = {}
        self._was_standby: dict[TaskId, list[_Seat]] = {}
        for member_id, runner in members.items():
            self._remember(member_id, runner)

    def _remember(self, member_id: str, runner: Runner) -> None:
        process = self._processes.setdefault(runner.process_id, Process(runner.process_id))
        process.add_member(member_id)
        place = _Seat(process, member_id)
        for task in _tasks_in(runner.before.active):
            self._was_active[task] = place
        for task in _tasks_in(runner.before.standby):
            self._was_standby.setdefault(task, []).append(place)

    def run(self) -> dict[str, TaskSet]:
        if self._members:
            self._assign_active()
            if self._replicas:
                self._assign_standby()
        return {
            member_id: TaskSet(
                tasks_of(self._processes[each.process_id].active.get(member_id, ())),
                tasks_of(self._processes[each.process_id].standby.get(member_id, ())),
            )
            for member_id, each in self._members.items()
        }

    # --- active tasks ---

    def _assign_active(self) -> None:
        tasks = sorted(self._active, key=lambda task: (task.partition, task.subtopology))
        tasks = [task for task in tasks if not self._stays(self._was_active.get(task), task)]
        tasks = [task for task in tasks if not self._stays(self._least_loaded(task), task)]
        by_load = ByLoad(self._processes.values())
        for task in sorted(tasks):
            process = by_load.take()
            assert process is not None
            self._count_active(process.add_to_least_loaded(task, is_active=True))
            by_load.put(process)

    def _stays(self, place: _Seat | None, task: TaskId) -> bool:
        """Gives an active task to a member that has its state, if that has room."""
        if place is None or place.process.counts[place.member_id] >= self._active_quota.most:
            return False
        self._count_active(place.process.add(place.member_id, task, is_active=True))
        return True

    def _count_active(self, count: int) -> None:
        self._active_quota.filled(count)
        self._quota.filled(count)

    def _least_loaded(self, task: TaskId, *, without: bool = False) -> _Seat | None:
        """The least loaded place where the task was a standby; `without`: it has not got it now."""
        places = self._was_standby.get(task)
        if not places:
            return None
        first = best = places[0]
        for each in places[1:]:
            is_freer = each.process.load < best.process.load and _count(each) < _count(best)
            if is_freer and not (without and each.process.has(task)):
                best = each
        return None if without and first.process.has(task) else best

    # --- standbys ---

    def _assign_standby(self) -> None:
        left: list[tuple[TaskId, int]] = []
        order = sorted(self._stateful, key=lambda task: (task.partition, task.subtopology))
        for task in reversed(order):
            for number in range(self._replicas):
                if not self._stands_by_again(task):
                    left.append((task, self._replicas - number))
                    break
        by_load = ByLoad(self._processes.values())
        for task, replicas in sorted(left, reverse=True):
            for _ in range(replicas):
                if not self._give_standby(task, by_load):
                    break

    def _stands_by_again(self, task: TaskId) -> bool:
        """Gives a standby to a member that had the task, if that has room."""
        place = self._was_active.get(task)
        if place is not None and not place.process.has(task) and self._has_room(place):
            self._quota.filled(place.process.add(place.member_id, task, is_active=False))
            return True
        place = self._least_loaded(task, without=True)
        if place is None or not self._has_room(place):
            return False
        self._quota.filled(place.process.add(place.member_id, task, is_active=False))
        return True

    def _has_room(self, place: _Seat) -> bool:
        return _count(place) < self._quota.most

    def _give_standby(self, task: TaskId, by_load: ByLoad) -> bool:
        """Gives a standby to the least loaded process without the task; False if each has it."""
        passed: list[Process] = []
        process = by_load.take()
        while process is not None and process.has(task):
            passed.append(process)
            process = by_load.take()
        if process is not None:
            self._quota.filled(process.add_to_least_loaded(task, is_active=False))
            passed.append(process)
        for each in passed:
            by_load.put(each)
        return process is not None


def _count(place: _Seat) -> int:
    return place.process.counts[place.member_id]


def _tasks(counts: Mapping[str, int]) -> list[TaskId]:
    return [TaskId(key, index) for key, count in counts.items() for index in range(count)]


def _tasks_in(tasks: Mapping[str, Iterable[int]]) -> Iterable[TaskId]:
    return (TaskId(key, index) for key, indexes in tasks.items() for index in indexes)
