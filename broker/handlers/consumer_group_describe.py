"""ConsumerGroupDescribe: groups that the broker assigns, what members read and are to read."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from broker.context import RequestContext
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.handlers.describe_groups import ALL_OPERATIONS
from broker.metadata import MetadataImage
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


def handle(
    request: ConsumerGroupDescribeRequest, context: RequestContext
) -> ConsumerGroupDescribeResponse:
    """GROUP_ID_NOT_FOUND (69) for a group that does not exist, or is a classic one."""
    groups = [_described(group_id, context) for group_id in request.group_ids]
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _described(group_id: str, context: RequestContext) -> ConsumerGroupDescribeGroup:
    try:
        _, consumer = context.broker.groups.require_consumer(group_id)
    except KafkaError as error:
        context.count_error(error.code)
        return ConsumerGroupDescribeGroup(
            group_id=group_id, error_code=error.code, error_message=error.message
        )
    image = context.broker.catalog.image
    default = context.broker.config.broker_config.group_consumer_assignors.split(",")[0]
    return ConsumerGroupDescribeGroup(
        group_id=group_id,
        group_state=consumer.state.value,
        group_epoch=consumer.epoch,
        assignment_epoch=consumer.target_epoch,
        assignor_name=consumer.assignor(default),
        members=[_member(each, consumer, image) for each in consumer.members.values()],
    )


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
    """What it reads, with what it has yet to give back."""
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
