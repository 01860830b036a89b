"""ShareGroupDescribe: share groups, their members, and the partitions that these read."""

from collections.abc import Generator, Iterator
from functools import partial
from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.share.member import ShareMember
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.described_groups import described_groups
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.metadata_image import MetadataImage
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.share_group_describe import (
    ShareGroupDescribeAssignment,
    ShareGroupDescribeGroup,
    ShareGroupDescribeMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeTopicPartitions,
)
from protocol.errors import ErrorCode, KafkaError

HIDDEN_TOPIC = "The group has described topic(s) that the client is not authorized to describe."


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: ShareGroupDescribeRequest, context: Context
) -> ShareGroupDescribeResponse | Deferred[ShareGroupDescribeResponse]:
    """GROUP_ID_NOT_FOUND (69) for a group that does not exist, or is of another type.

    A group that is named twice is described once.
    """
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    return context.services.answers.make(
        partial(_answers, request, context),
        lambda groups: ShareGroupDescribeResponse(groups=groups),
    )


def _answers(
    request: ShareGroupDescribeRequest, context: Context, room: AnswerRoom
) -> Iterator[ShareGroupDescribeGroup | None]:
    return described_groups(request, context, room, _described, ShareGroupDescribeGroup)


def _described(
    group_id: str, context: Context, room: AnswerRoom
) -> Generator[None, None, ShareGroupDescribeGroup]:
    _, share = context.services.groups.require_share(group_id)
    image = context.services.topics.image
    members = []
    for each in list(share.members.values()):
        _check_topics(each, image, context)
        room.take(1 + len(each.assigned), 2 * each.size_bytes)
        members.append(_member(each, image))
        yield
    return ShareGroupDescribeGroup(
        group_id=group_id,
        group_state=share.state.value,
        group_epoch=share.epoch,
        assignment_epoch=share.target_epoch,
        assignor_name=context.services.config.broker_config.group_share_assignors,
        members=members,
    )


def _check_topics(member: ShareMember, image: MetadataImage, context: Context) -> None:
    """The client may hear of every topic that the member reads."""
    for topic_id in member.assigned:
        topic = image.by_id.get(topic_id)
        if topic and not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPIC)


def _member(member: ShareMember, image: MetadataImage) -> ShareGroupDescribeMember:
    return ShareGroupDescribeMember(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.names),
        assignment=ShareGroupDescribeAssignment(
            topic_partitions=[
                ShareGroupDescribeTopicPartitions(
                    topic_id=topic, topic_name=image.by_id[topic].name, partitions=sorted(indexes)
                )
                for topic, indexes in member.assigned.items()
                if topic in image.by_id
            ]
        ),
    )
