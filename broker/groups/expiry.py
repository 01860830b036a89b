"""Expiry of committed offsets: KIP-211's rules, by the wall clock.

Of a group that was left by its last member all offsets go together, so long after that; of one
whose members read other topics only, those of the others; of one that never had members, or that
the broker assigns for, each so long after its commit. An old client may have given an offset a time
of its own. An offset that an open transaction may replace stays.
"""

from collections.abc import Callable

from broker.groups.classic.group import Group, GroupState, Place
from broker.groups.classic.subscription import CONSUMER
from broker.groups.records.classic import NONE


def expired_offsets(
    group: Group, now_ms: int, retention_ms: int, is_pending: Callable[[str, Place], bool]
) -> list[Place]:
    """The offsets whose time is over, but those that a transaction may replace; with
    them those that were to go before, and may be there still."""
    found = _expired(group, now_ms, retention_ms)
    found += [place for place in group.going if not group.is_writing(place)]
    return [place for place in found if not is_pending(group.group_id, place)]


def _expired(group: Group, now_ms: int, retention_ms: int) -> list[Place]:
    if group.modern is not None:
        read = group.modern.topics
        old = _older(group, now_ms, retention_ms, since_ms=None)
        return [place for place in old if place[0] not in read]
    if group.is_simple:
        return _older(group, now_ms, retention_ms, since_ms=None)
    if group.state is GroupState.EMPTY:
        since = group.since_ms if group.since_ms != NONE else None
        return _older(group, now_ms, retention_ms, since_ms=since)
    topics = group.topics
    if group.protocol_type == CONSUMER and group.state is GroupState.STABLE and topics is not None:
        old = _older(group, now_ms, retention_ms, since_ms=None)
        return [place for place in old if place[0] not in topics]
    return []


def _older(group: Group, now_ms: int, retention_ms: int, *, since_ms: int | None) -> list[Place]:
    """Counted from `since_ms`, or else from each commit."""
    found = []
    for place, value in group.offsets.items():
        if group.is_writing(place):
            continue
        if value.expire_timestamp != NONE:
            is_over = now_ms >= value.expire_timestamp
        else:
            since = value.commit_timestamp if since_ms is None else since_ms
            is_over = now_ms - since >= retention_ms
        if is_over:
            found.append(place)
    return found
