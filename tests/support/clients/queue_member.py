"""A member of a share group that speaks for itself: it says which partitions it reads, and asks the
leader of each.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pipeline.broker_client import BrokerClient
from pipeline.errors import BrokerRefused
from protocol.apis import share_acknowledge, share_fetch
from protocol.apis.find_coordinator import FindCoordinatorRequest
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.errors import ErrorCode
from tests.support.patience import until

ACCEPT, REJECT = 1, 3
GROUP_RESOURCE = 32
MEMBER = "member-of-a-test"
LATER = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE,
         ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_LEADER_OR_FOLLOWER}  # fmt: skip


class QueueMember:
    """One member of a group that reads one topic."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        """It has not joined."""
        self._bootstrap = bootstrap
        self._group = group
        self._topic = topic
        self._epoch = 0

    def begin_with_the_first(self, **settings: str) -> None:
        """The group reads from the first record on; `settings` with underscores for dots."""
        wanted = {"share_auto_offset_reset": "earliest", **settings}
        changes = [
            AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
            for name, value in wanted.items()
        ]
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self._group, configs=changes
        )
        answer = asked(self._bootstrap, IncrementalAlterConfigsRequest(resources=[resource]))
        assert answer.responses[0].error_code == 0, answer

    def join(self) -> list[int]:
        """The partitions that it is to read, once there are any."""
        found: list[int] = []

        def has_some() -> bool:
            found[:] = self._beat() or []
            return bool(found)

        until(has_some, "the member gets no partition")
        return found

    def leave(self) -> None:
        """It reads no more."""
        self._epoch = -1
        until(lambda: self._beat() is not None, "the member cannot leave")

    def take(self, partition: int, kind: int = ACCEPT) -> list[tuple[int, int, int]]:
        """Accepts what one fetch gives, in ranges: first, last, delivery count."""
        taken: list[tuple[int, int, int]] = []

        def is_done() -> bool:
            found = self._taken(partition, kind)
            taken[:] = found or []
            return found is not None

        until(is_done, "the records are not accepted")
        return taken

    def _beat(self) -> list[int] | None:
        """Its partitions; None where no coordinator answers so far."""
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=[self._group])
        request = ShareGroupHeartbeatRequest(
            group_id=self._group, member_id=MEMBER, member_epoch=self._epoch,
            subscribed_topic_names=[self._topic],
        )  # fmt: skip
        try:
            [place] = asked(self._bootstrap, find).coordinators
            if place.error_code:
                return None
            answer = asked(f"{place.host}:{place.port}", request)
        except BrokerRefused:
            return None
        assert answer.error_code in {0, *LATER}, answer
        if answer.error_code:
            return None
        given = answer.assignment.topic_partitions if answer.assignment is not None else []
        return [index for each in given for index in each.partitions]

    def _taken(self, partition: int, kind: int) -> list[tuple[int, int, int]] | None:
        """None: the leader is another one, or waits for others."""
        topic_id, address = self._leader(partition)
        if address is None:
            return None
        try:
            with BrokerClient(address) as client:
                return self._taken_at(client, (topic_id, partition), kind)
        except BrokerRefused:
            return None

    def _taken_at(
        self, client: BrokerClient, place: tuple[UUID, int], kind: int
    ) -> list[tuple[int, int, int]] | None:
        answer = client.call(self._fetch(*place))
        [data] = [each for topic in answer.responses for each in topic.partitions] or [None]
        if data is None:
            return []
        if data.error_code in LATER:
            return None
        assert data.error_code == 0, data
        got = [
            (each.first_offset, each.last_offset, each.delivery_count)
            for each in data.acquired_records
        ]
        answer = client.call(self._say(place, got, kind))
        code = answer.responses[0].partitions[0].error_code
        if kind == REJECT and code == ErrorCode.UNKNOWN_SERVER_ERROR:
            return got  # their letters come later
        assert code in {0, *LATER}, answer
        return None if code else got

    def _leader(self, partition: int) -> tuple[UUID, str | None]:
        topic = MetadataRequestTopic(name=self._topic)
        answer = asked(self._bootstrap, MetadataRequest(topics=[topic]))
        nodes = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
        leaders = {each.partition_index: each.leader_id for each in answer.topics[0].partitions}
        return answer.topics[0].topic_id, nodes.get(leaders.get(partition, -1))

    def _fetch(self, topic_id: UUID, partition: int) -> Any:
        part = share_fetch.ShareFetchPartition(
            partition_index=partition, acknowledgement_batches=[]
        )
        topics = [share_fetch.ShareFetchTopic(topic_id=topic_id, partitions=[part])]
        return share_fetch.ShareFetchRequest(
            group_id=self._group, member_id=MEMBER, share_session_epoch=0, max_wait_ms=5000,
            min_bytes=1, max_bytes=1 << 20, max_records=500, batch_size=500, topics=topics,
            forgotten_topics_data=[],
        )  # fmt: skip

    def _say(self, place: tuple[UUID, int], got: Sequence[tuple[int, int, int]], kind: int) -> Any:
        ranges = [
            share_acknowledge.AcknowledgementBatch(
                first_offset=first, last_offset=last, acknowledge_types=[kind]
            )
            for first, last, _ in got
        ]
        part = share_acknowledge.ShareAcknowledgePartition(
            partition_index=place[1], acknowledgement_batches=ranges
        )
        topics = [share_acknowledge.ShareAcknowledgeTopic(topic_id=place[0], partitions=[part])]
        return share_acknowledge.ShareAcknowledgeRequest(
            group_id=self._group, member_id=MEMBER, share_session_epoch=1, topics=topics
        )


def asked(address: str, request: Any) -> Any:
    """The answer of the broker there."""
    with BrokerClient(address) as client:
        return client.call(request)
