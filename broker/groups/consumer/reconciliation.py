"""Steps of a member from its current assignment to its target: pure, one step at a time.

A member gives back first, then takes, and never a partition that another member still has. Rules:
KIP-848, Kafka's `CurrentAssignmentBuilder`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from broker.groups.consumer.member import Assigned, ConsumerMember, MemberState
from broker.groups.subscriptions import Target
from protocol.errors import ErrorCode, KafkaError

Owned = Mapping[UUID, frozenset[int]]


class Goal(NamedTuple):
    """Target of a member, with its epoch."""

    epoch: int
    target: Target
    subscribed: frozenset[UUID]
    """The topics that the member reads now: what is no longer among them is given back."""
    is_taken: Callable[[UUID, int], bool]
    """True when another member still has a partition."""


def reconciled(
    member: ConsumerMember, goal: Goal, owned: Owned | None, *, subscription_changed: bool
) -> ConsumerMember:
    """The member one step on, or itself. `owned` is what it says that it has, None: as before.

    FENCED_MEMBER_EPOCH (110) for a member in a state of a later Kafka, which has to join again.
    """
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return _narrowed(member, goal, owned) if subscription_changed else member
        case MemberState.UNREVOKED if _still_has(owned, member.revoking):
            return _narrowed(member, goal, owned) if subscription_changed else member
        case MemberState.UNKNOWN if owned is None or any(owned.values()):
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The member is in an unknown state: it must give back everything and rejoin",
            )
        case MemberState.UNKNOWN:
            return _next(member, goal, owned, epoch=goal.epoch)
        case _:
            return _next(member, goal, owned, epoch=member.epoch)


def _next(member: ConsumerMember, goal: Goal, owned: Owned | None, *, epoch: int) -> ConsumerMember:
    wanted = {topic: indexes for topic, indexes in goal.target.items() if topic in goal.subscribed}
    kept = _keeping(member.assigned, lambda topic, index: index in wanted.get(topic, ()))
    revoking = _keeping(member.assigned, lambda topic, index: index not in wanted.get(topic, ()))
    if revoking and _still_has(owned, revoking):
        return member.moved(epoch, MemberState.UNREVOKED, kept, revoking)
    missing = [
        (topic, index)
        for topic, indexes in wanted.items()
        for index in sorted(indexes - kept.get(topic, {}).keys())
    ]
    free = [place for place in missing if not goal.is_taken(*place)]
    state = MemberState.STABLE if len(free) == len(missing) else MemberState.UNRELEASED
    if member.state is state and member.epoch == goal.epoch and not free and not member.revoking:
        return member if kept == member.assigned else member.moved(goal.epoch, state, kept, {})
    return member.moved(goal.epoch, state, _with(kept, free, goal.epoch), {})


def _narrowed(member: ConsumerMember, goal: Goal, owned: Owned | None) -> ConsumerMember:
    """Revokes topics that the member no longer reads, whatever its target says."""
    kept = {topic: each for topic, each in member.assigned.items() if topic in goal.subscribed}
    if len(kept) == len(member.assigned):
        return member
    revoking = {topic: dict(each) for topic, each in member.revoking.items()}
    for topic, each in member.assigned.items():
        if topic not in goal.subscribed:
            revoking.setdefault(topic, {}).update(each)
    if _still_has(owned, revoking):
        return member.moved(member.epoch, MemberState.UNREVOKED, kept, revoking)
    return member.moved(member.epoch, member.state, kept, member.revoking)


def _still_has(owned: Owned | None, partitions: Assigned) -> bool:
    """A member that does not say what it has, has everything still."""
    return owned is None or any(
        not owned.get(topic, frozenset()).isdisjoint(indexes)
        for topic, indexes in partitions.items()
    )


def _keeping(assigned: Assigned, keep: Callable[[UUID, int], bool]) -> dict[UUID, dict[int, int]]:
    found = {
        topic: {index: epoch for index, epoch in each.items() if keep(topic, index)}
        for topic, each in assigned.items()
    }
    return {topic: each for topic, each in found.items() if each}


def _with(kept: Assigned, free: Iterable[tuple[UUID, int]], epoch: int) -> Assigned:
    result = {topic: dict(each) for topic, each in kept.items()}
    for topic, index in free:
        result.setdefault(topic, {})[index] = epoch
    return result
