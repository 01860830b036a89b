"""Permission to commit and fetch offsets of a streams group: members, by their epochs (KIP-1071).

A member whose epoch is behind may still commit for tasks that it was given in that epoch or before
(KIP-1251). Rules: Kafka 4.3's `StreamsGroup.validateOffsetCommit` and `validateOffsetFetch`.
"""

from broker.groups.classic.members import MemberClaim
from broker.groups.requests import EPOCHS_SINCE_VERSION, CommitAsked
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from protocol.errors import ErrorCode, KafkaError


def check_streams_commit(streams: StreamsGroup, claim: MemberClaim, asked: CommitAsked) -> None:
    """UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113).

    UNSUPPORTED_VERSION (35) for a member that asks in an old version.
    """
    if claim.generation < 0 and not streams.members:
        return
    member = streams.member(claim.member_id)
    if asked.version < EPOCHS_SINCE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group "
            "protocol",
        )
    if claim.generation > member.epoch:
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)
    if claim.generation < member.epoch:
        for topic, index in asked.named:
            given = _given_in(streams, member, topic, index)
            if given is None or claim.generation < given:
                raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)


def _given_in(streams: StreamsGroup, member: StreamsMember, topic: str, index: int) -> int | None:
    """The epoch in which the member was given the task that reads a partition."""
    by_source = {} if streams.topology is None else streams.topology.by_source
    name = by_source.get(topic, "")
    given = member.held.active.get(name, {}).get(index)
    return member.revoking.active.get(name, {}).get(index) if given is None else given


def check_streams_fetch(streams: StreamsGroup, member_id: str | None, epoch: int) -> None:
    """UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113)."""
    if member_id is None and epoch < 0:
        return
    if epoch != streams.member(member_id or "").epoch:
        raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH)
