"""ConsumerGroupDescribe: groups that the broker assigns, what members read and are to read."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple
from uuid import UUID

from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.groups.coordinator import GroupCoordinator
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.described_groups import described_groups
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.metadata_image import MetadataImage
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.consumer_group_describe import (
    CLASSIC_MEMBER,
    CONSUMER_MEMBER,
    ConsumerGroupDescribeAssignment,
    ConsumerGroupDescribeGroup,
    ConsumerGroupDescribeMember,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeTopicPartitions,
)
from protocol.errors import ErrorCode, KafkaError

PARTITION_BYTES = 32  # a number in a list


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]

HIDDEN_TOPIC = "The group has described topic(s) that the client is not authorized to describe."


def handle(
    request: ConsumerGroupDescribeRequest, context: Context
) -> ConsumerGroupDescribeResponse | Deferred[ConsumerGroupDescribeResponse]:
    """GROUP_ID_NOT_FOUND (69) for a group that does not exist, or is a classic one.

    A group that is named twice is described once.
    """
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    return context.services.answers.make(
        partial(_answers, request, context),
        lambda groups: ConsumerGroupDescribeResponse(groups=groups),
    )


def _answers(
    request: ConsumerGroupDescribeRequest, context: Context, room: AnswerRoom
) -> Iterator[ConsumerGroupDescribeGroup | None]:
    return described_groups(request, context, room, _described, ConsumerGroupDescribeGroup)


def _described(
    group_id: str, context: Context, room: AnswerRoom
) -> Generator[None, None, ConsumerGroupDescribeGroup]:
    _, consumer = context.services.groups.require_consumer(group_id)
    image = context.services.topics.image
    default = context.services.config.broker_config.group_consumer_assignors.split(",")[0]
    members = []
    for each in list(consumer.members.values()):
        _check_topics(each, consumer, image, context)
        target = consumer.targets.get(each.member_id, {})
        room.take(1 + len(target), 2 * each.size_bytes + PARTITION_BYTES * _count(target))
        members.append(_member(each, consumer, image))
        yield
    return ConsumerGroupDescribeGroup(
        group_id=group_id,
        group_state=consumer.state.value,
        group_epoch=consumer.epoch,
        assignment_epoch=consumer.target_epoch,
        assignor_name=consumer.assignor(default),
        members=members,
    )


def _check_topics(
    member: ConsumerMember, consumer: ConsumerGroup, image: MetadataImage, context: Context
) -> None:
    """The client may hear of every topic that the member has, or will have."""
    target = consumer.targets.get(member.member_id, {})
    for topic_id in {*member.assigned, *member.revoking, *target}:
        topic = image.by_id.get(topic_id)
        if topic and not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPIC)


def _count(partitions: Mapping[UUID, frozenset[int]]) -> int:
    return sum(map(len, partitions.values()))


def _member(
    member: ConsumerMember, consumer: ConsumerGroup, image: MetadataImage
) -> ConsumerGroupDescribeMember:
    return ConsumerGroupDescribeMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        subscribed_topic_regex=member.regex,
        assignment=_assignment(_held(member), image),
        target_assignment=_assignment(consumer.targets.get(member.member_id, {}), image),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _held(member: ConsumerMember) -> Mapping[UUID, Iterable[int]]:
    """Partitions that the member reads or has yet to give back, by topic."""
    topics = {*member.assigned, *member.revoking}
    return {
        topic: [*member.assigned.get(topic, ()), *member.revoking.get(topic, ())]
        for topic in topics
    }


def _assignment(
    partitions: Mapping[UUID, Iterable[int]], image: MetadataImage
) -> ConsumerGroupDescribeAssignment:
    return ConsumerGroupDescribeAssignment(
        topic_partitions=[
            ConsumerGroupDescribeTopicPartitions(
                topic_id=topic, topic_name=image.by_id[topic].name, partitions=sorted(indexes)
            )
            for topic, indexes in partitions.items()
            if topic in image.by_id
        ]
    )
