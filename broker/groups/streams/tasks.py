"""Tasks of streams groups: pieces of work, each a subtopology on the partitions of one number.

An active task processes records, a standby keeps a copy of its state, a warm-up builds one. Values,
never changed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.groups.records.streams import (
    CurrentTasks,
    StreamsTargetValue,
    TargetTasks,
)
from broker.groups.subscriptions import OBJECT_BYTES

Tasks = Mapping[str, frozenset[int]]
"""Partitions by subtopology."""
DatedTasks = Mapping[str, Mapping[int, int]]
"""Partitions by subtopology, with the epoch in which the member was given each."""


class TaskId(NamedTuple):
    """One task."""

    subtopology: str
    partition: int


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks that a member is to run, or says that it runs."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when there is none."""
        return not (self.active or self.standby or self.warmup)

    def meets(self, held: "HeldTasks") -> bool:
        """True when a task is in both, in the same role."""
        pairs = (
            (self.active, held.active),
            (self.standby, held.standby),
            (self.warmup, held.warmup),
        )
        return any(
            not indexes.isdisjoint(there.get(name, ()))
            for here, there in pairs
            for name, indexes in here.items()
        )

    def is_within(self, held: "HeldTasks") -> bool:
        """True when every task is in `held`, in the same role."""
        pairs = (
            (self.active, held.active),
            (self.standby, held.standby),
            (self.warmup, held.warmup),
        )
        return all(
            name in there and all(index in there[name] for index in indexes)
            for here, there in pairs
            for name, indexes in here.items()
        )

    @property
    def size_bytes(self) -> int:
        """About what it takes."""
        parts = (self.active, self.standby, self.warmup)
        return OBJECT_BYTES * sum(1 + len(each) for part in parts for each in part.values())


@dataclass(frozen=True, slots=True)
class HeldTasks:
    """Tasks that a member runs, or has yet to give back."""

    active: DatedTasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True when there is none."""
        return not (self.active or self.standby or self.warmup)

    @property
    def size_bytes(self) -> int:
        """About what it takes."""
        simple = sum(
            1 + len(each) for part in (self.standby, self.warmup) for each in part.values()
        )
        return OBJECT_BYTES * (simple + sum(1 + 2 * len(each) for each in self.active.values()))


NO_TASKS, NOTHING_HELD = TaskSet(), HeldTasks()


def tasks_of(found: Iterable[TaskId]) -> Tasks:
    """Tasks by subtopology."""
    by_name: dict[str, set[int]] = {}
    for each in found:
        by_name.setdefault(each.subtopology, set()).add(each.partition)
    return {name: frozenset(indexes) for name, indexes in by_name.items()}


# --- as stored ---


def stored_target(target: TaskSet) -> StreamsTargetValue:
    """A target as stored."""
    return StreamsTargetValue(
        active_tasks=_targets(target.active),
        standby_tasks=_targets(target.standby),
        warmup_tasks=_targets(target.warmup),
    )


def _targets(tasks: Tasks) -> list[TargetTasks]:
    return [
        TargetTasks(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)
    ]


def read_target(value: StreamsTargetValue) -> TaskSet:
    """A target as it is remembered."""
    return TaskSet(
        _simple(value.active_tasks), _simple(value.standby_tasks), _simple(value.warmup_tasks)
    )


def stored_dated(tasks: DatedTasks) -> list[CurrentTasks]:
    """Active tasks as stored."""
    return [
        CurrentTasks(
            subtopology_id=name,
            partitions=sorted(tasks[name]),
            assignment_epochs=[tasks[name][index] for index in sorted(tasks[name])],
        )
        for name in sorted(tasks)
    ]


def stored_simple(tasks: Tasks) -> list[CurrentTasks]:
    """Other tasks as stored."""
    return [
        CurrentTasks(subtopology_id=name, partitions=sorted(tasks[name])) for name in sorted(tasks)
    ]


def read_held(
    active: Iterable[CurrentTasks],
    standby: Iterable[CurrentTasks],
    warmup: Iterable[CurrentTasks],
    epoch: int,
) -> HeldTasks:
    """Tasks as they are remembered; `epoch` is that of active ones without their own."""
    return HeldTasks(_dated(active, epoch), _simple(standby), _simple(warmup))


def _dated(stored: Iterable[CurrentTasks], epoch: int) -> DatedTasks:
    found = {}
    for each in stored:
        epochs = each.assignment_epochs
        if epochs is None or len(epochs) != len(each.partitions):
            epochs = [epoch] * len(each.partitions)
        found[each.subtopology_id] = dict(zip(each.partitions, epochs, strict=True))
    return found


def _simple(stored: Iterable[TargetTasks] | Iterable[CurrentTasks]) -> Tasks:
    return {each.subtopology_id: frozenset(each.partitions) for each in stored}
