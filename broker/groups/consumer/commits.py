"""Permission to commit and fetch offsets of a consumer group: members, by their epochs (KIP-848).

A member whose epoch is behind may still commit for what it was given in that epoch or before
(KIP-1251). Rules: Kafka's `ConsumerGroup.validateOffsetCommit` and `validateOffsetFetch`.
"""

from broker.groups.classic.members import MemberClaim
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.groups.requests import EPOCHS_SINCE_VERSION, CommitAsked
from protocol.errors import ErrorCode, KafkaError


def check_commit(consumer: ConsumerGroup, claim: MemberClaim, asked: CommitAsked) -> None:
    """UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113), or of a classic one ILLEGAL_GENERATION.

    UNSUPPORTED_VERSION (35) for a member of the new protocol that asks in an old version.
    """
    if claim.generation < 0 and not consumer.members:
        return
    member = consumer.member(claim.member_id)
    if member.classic is None and asked.version < EPOCHS_SINCE_VERSION:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the consumer group "
            "protocol",
        )
    if claim.generation > member.epoch:
        raise _stale(member)
    if claim.generation < member.epoch:
        for topic, index in asked.places:
            given = member.assigned.get(topic, {}).get(index)
            if given is None:
                given = member.revoking.get(topic, {}).get(index)
            if given is None or claim.generation < given:
                raise _stale(member)


def check_fetch(consumer: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """UNKNOWN_MEMBER_ID (25), STALE_MEMBER_EPOCH (113), or of a classic one ILLEGAL_GENERATION."""
    if member_id is None and epoch < 0:
        return
    member = consumer.member(member_id or "")
    if epoch != member.epoch:
        raise _stale(member)


def _stale(member: ConsumerMember) -> KafkaError:
    if member.classic is not None:
        return KafkaError(ErrorCode.ILLEGAL_GENERATION)
    return KafkaError(ErrorCode.STALE_MEMBER_EPOCH)
