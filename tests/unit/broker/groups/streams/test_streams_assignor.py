"""The assignor of streams groups: each task once, evenly, and where its state is."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as some

from broker.groups.records.streams import StoredSubtopology
from broker.groups.streams.assignor import Runner, sticky
from broker.groups.streams.configuring import ConfiguredSubtopology, InternalTopic
from broker.groups.streams.tasks import NO_TASKS, TaskId, TaskSet

Parts = dict[str, ConfiguredSubtopology]


def part(name: str, tasks: int, *, is_stateful: bool = True) -> ConfiguredSubtopology:
    logs = [InternalTopic(f"{name}-log", tasks, 0, {})] if is_stateful else []
    return ConfiguredSubtopology(tasks, StoredSubtopology(subtopology_id=name), [], logs)


def runners(targets: Mapping[str, TaskSet] | None = None, **processes: str) -> dict[str, Runner]:
    before = targets or {}
    return {name: Runner(of, before.get(name, NO_TASKS)) for name, of in processes.items()}


def active(targets: Mapping[str, TaskSet]) -> dict[str, list[int]]:
    return {name: sorted(each.active.get("0", ())) for name, each in targets.items()}


def ids(tasks: Mapping[str, frozenset[int]]) -> list[TaskId]:
    return [TaskId(name, index) for name, indexes in tasks.items() for index in indexes]


def test_one_member_has_everything() -> None:
    parts = {"0": part("0", 3), "1": part("1", 2, is_stateful=False)}
    targets = sticky(runners(a="p"), parts, 1)
    assert targets == {"a": TaskSet({"0": frozenset({0, 1, 2}), "1": frozenset({0, 1})})}


def test_nobody_has_nothing() -> None:
    assert sticky({}, {"0": part("0", 3)}, 1) == {}


def test_who_comes_gets_what_is_too_much_and_the_others_keep_theirs() -> None:
    parts = {"0": part("0", 4)}
    first = sticky(runners(a="p"), parts, 0)
    second = sticky(runners(first, a="p", b="q"), parts, 0)
    assert active(second) == {"a": [0, 1], "b": [2, 3]}
    assert active(sticky(runners(second, a="p", b="q"), parts, 0)) == active(second)
    assert active(sticky(runners(second, b="q"), parts, 0)) == {"b": [0, 1, 2, 3]}


def test_a_standby_takes_over() -> None:
    parts = {"0": part("0", 2)}
    first = sticky(runners(a="p", b="q"), parts, 1)
    assert [each.standby["0"] for each in first.values()] == [
        first["b"].active["0"],
        first["a"].active["0"],
    ]
    third = sticky(runners(first, b="q", c="r"), parts, 1)
    assert third["b"].active["0"] == first["b"].active["0"], "it keeps what it had"
    assert third["c"].standby["0"] == third["b"].active["0"]


def test_standbys_are_elsewhere_or_nowhere() -> None:
    parts = {"0": part("0", 2), "1": part("1", 2, is_stateful=False)}
    assert sticky(runners(a="p", b="p"), parts, 2)["a"].standby == {}
    spread = sticky(runners(a="p", b="q"), parts, 2)
    copies = Counter(task for each in spread.values() for task in ids(each.standby))
    assert copies == {TaskId("0", 0): 1, TaskId("0", 1): 1}


def test_a_process_with_more_threads_has_more() -> None:
    targets = sticky(runners(a="p", b="p", c="p", d="q"), {"0": part("0", 8)}, 0)
    assert {name: len(each) for name, each in active(targets).items()} == dict.fromkeys("abcd", 2)


MEMBERS = some.dictionaries(some.sampled_from("abcdefgh"), some.sampled_from("pqr"), max_size=8)
PARTS = some.dictionaries(
    some.sampled_from("012"), some.tuples(some.integers(1, 9), some.booleans()), max_size=3
)


@given(
    rounds=some.lists(MEMBERS, min_size=1, max_size=4), parts=PARTS, replicas=some.integers(0, 2)
)
def test_whatever_comes_each_task_is_active_once_and_its_standbys_are_elsewhere(
    rounds: list[dict[str, str]], parts: dict[str, tuple[int, bool]], replicas: int
) -> None:
    made = {name: part(name, tasks, is_stateful=state) for name, (tasks, state) in parts.items()}
    targets: dict[str, TaskSet] = {}
    for members in rounds:
        targets = sticky(runners(targets, **members), made, replicas)
        assert targets.keys() == members.keys()
        _check(targets, members, made, replicas)


def _check(
    targets: Mapping[str, TaskSet], members: dict[str, str], made: Parts, replicas: int
) -> None:
    all_tasks = [
        TaskId(name, index) for name, each in made.items() for index in range(each.task_count)
    ]
    given_out = [task for each in targets.values() for task in ids(each.active)]
    assert sorted(given_out) == (sorted(all_tasks) if members else [])
    by_process: dict[str, list[TaskId]] = {}
    for name, each in targets.items():
        by_process.setdefault(members[name], []).extend(ids(each.active) + ids(each.standby))
    for tasks in by_process.values():
        assert len(tasks) == len(set(tasks)), "a process has a task in one role"
    copies = Counter(task for each in targets.values() for task in ids(each.standby))
    most = min(replicas, max(len(by_process) - 1, 0))
    for task in all_tasks if members else ():
        assert copies[task] == (most if made[task.subtopology].is_stateful else 0)


@pytest.mark.parametrize("tasks", [1, 7, 100])
def test_active_tasks_are_even(tasks: int) -> None:
    members = {f"m{number}": f"p{number}" for number in range(7)}
    counts = [
        len(each)
        for each in active(sticky(runners(**members), {"0": part("0", tasks)}, 0)).values()
    ]
    assert max(counts) - min(counts) <= 1
