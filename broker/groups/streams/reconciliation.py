"""Steps of a member from what it runs to its target: pure, one step at a time.

A member gives back first, then takes, and never a task that is still active elsewhere, or that its
process still has in another role. Rules: KIP-1071, Kafka 4.3's `CurrentAssignmentBuilder`.
"""

from collections.abc import Callable
from typing import NamedTuple

from broker.groups.streams.member import StreamsMember, StreamsMemberState
from broker.groups.streams.owners import TaskOwners
from broker.groups.streams.tasks import (
    NOTHING_HELD,
    DatedTasks,
    HeldTasks,
    TaskId,
    Tasks,
    TaskSet,
)
from protocol.errors import ErrorCode, KafkaError

Keeps = Callable[[TaskId, str], bool]


class TaskGoal(NamedTuple):
    """Target of a member, with its epoch."""

    epoch: int
    target: TaskSet
    owners: TaskOwners


class _Simple(NamedTuple):
    kept: Tasks
    leaving: Tasks
    coming: Tasks
    is_waiting: bool


def check_known(member: StreamsMember, owned: TaskSet | None) -> None:
    """FENCED_MEMBER_EPOCH (110) for a member in a state of a later Kafka, unless it runs nothing:
    it has to join again.
    """
    if member.state is not StreamsMemberState.UNKNOWN:
        return
    if owned is None or not owned.is_empty:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its "
            "tasks and rejoin.",
        )


def reconciled(member: StreamsMember, goal: TaskGoal, owned: TaskSet | None) -> StreamsMember:
    """The member one step on, or itself. `owned` is what it says that it runs, None: as before."""
    match member.state:
        case StreamsMemberState.STABLE if member.epoch == goal.epoch:
            return member
        case StreamsMemberState.UNREVOKED:
            if owned is None or owned.meets(member.revoking):
                return member
            return _next(member, goal, owned, epoch=member.epoch + 1)
        case StreamsMemberState.UNKNOWN:
            return _next(member, goal, owned, epoch=goal.epoch)
        case _:
            return _next(member, goal, owned, epoch=member.epoch)


def _next(
    member: StreamsMember, goal: TaskGoal, owned: TaskSet | None, *, epoch: int
) -> StreamsMember:
    held, target, owners = member.held, goal.target, goal.owners
    active = _simple(_undated(held.active), target.active, owners.keep_active_out, member)
    standby = _simple(held.standby, target.standby, owners.keep_copy_out, member)
    warmup = _simple(held.warmup, target.warmup, owners.keep_copy_out, member)
    leaving = HeldTasks(_dated(held.active, active.leaving), standby.leaving, warmup.leaving)
    if not leaving.is_empty and (owned is None or owned.meets(leaving)):
        kept = HeldTasks(_dated(held.active, active.kept), standby.kept, warmup.kept)
        return member.moved(epoch, StreamsMemberState.UNREVOKED, kept, leaving)
    whole = HeldTasks(
        _with(_dated(held.active, active.kept), active.coming, goal.epoch),
        _merged(standby.kept, standby.coming),
        _merged(warmup.kept, warmup.coming),
    )
    waits = active.is_waiting or standby.is_waiting or warmup.is_waiting
    state = StreamsMemberState.UNRELEASED if waits else StreamsMemberState.STABLE
    return member.moved(goal.epoch, state, whole, NOTHING_HELD)


def _simple(held: Tasks, target: Tasks, keeps_out: Keeps, member: StreamsMember) -> _Simple:
    nothing = frozenset[int]()
    kept = {name: indexes & target.get(name, nothing) for name, indexes in held.items()}
    leaving = {name: indexes - kept[name] for name, indexes in held.items()}
    missing = {name: indexes - kept.get(name, nothing) for name, indexes in target.items()}
    coming = {
        name: frozenset(
            index for index in indexes if not keeps_out(TaskId(name, index), member.process_id)
        )
        for name, indexes in missing.items()
    }
    return _Simple(_some(kept), _some(leaving), _some(coming), coming != missing)


def _some(tasks: Tasks) -> Tasks:
    return {name: indexes for name, indexes in tasks.items() if indexes}


def _undated(tasks: DatedTasks) -> Tasks:
    return {name: frozenset(each) for name, each in tasks.items()}


def _dated(held: DatedTasks, chosen: Tasks) -> DatedTasks:
    return {
        name: {index: held[name][index] for index in indexes} for name, indexes in chosen.items()
    }


def _with(kept: DatedTasks, coming: Tasks, epoch: int) -> DatedTasks:
    whole = {name: dict(each) for name, each in kept.items()}
    for name, indexes in coming.items():
        whole.setdefault(name, {}).update(dict.fromkeys(indexes, epoch))
    return whole


def _merged(kept: Tasks, coming: Tasks) -> Tasks:
    names = kept.keys() | coming.keys()
    return {name: kept.get(name, frozenset()) | coming.get(name, frozenset()) for name in names}
