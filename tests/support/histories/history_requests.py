"""Requests that speak of one partition of many topics at once, over one connection.

Owns the connection. Arguments and answers go by topic name, whatever the version says; large
numbers of topics are asked for in portions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from protocol.apis import (
    create_topics,
    delete_records,
    describe_configs,
    fetch,
    incremental_alter_configs,
    list_offsets,
    offset_for_leader_epoch,
    produce,
)
from tests.support.clients.wire import WireClient
from tests.support.histories.histories import Settings

TOPICS_AT_A_TIME = 400
TOPIC_IDS_SINCE = 13
TOPIC = 2  # kind of a resource with settings
NO_ID = UUID(int=0)

T = TypeVar("T")


class ManyTopics:
    """A client that asks of all topics in one breath."""

    def __init__(self, bootstrap: str, ids: dict[str, UUID]) -> None:
        """Connects. `ids` is filled by `create`."""
        host, _, port = bootstrap.rpartition(":")
        self._client = WireClient(host, int(port))
        self._ids = ids

    def close(self) -> None:
        """Ends the connection."""
        self._client.close()

    def create(self, topics: Mapping[str, Settings]) -> dict[str, int]:
        """Makes topics of one partition; error codes."""
        codes: dict[str, int] = {}
        for portion in _portions(topics):
            request = create_topics.CreateTopicsRequest(
                topics=[_creatable(name, settings) for name, settings in portion.items()],
                timeout_ms=30_000,
            )
            for result in self._client.call(request, 7).topics:
                codes[result.name] = result.error_code
                self._ids[result.name] = result.topic_id
        return codes

    def alter(self, topics: Mapping[str, Settings], *, only_check: bool = False) -> dict[str, int]:
        """Sets settings, and takes those away that are None; error codes."""
        codes: dict[str, int] = {}
        for portion in _portions(topics):
            resources = [_alteration(name, settings) for name, settings in portion.items()]
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=resources, validate_only=only_check
            )
            for answer in self._client.call(request, 1).responses:
                codes[answer.resource_name] = answer.error_code
        return codes

    def describe(self, topics: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
        """Value, source and whether it is fixed, of each setting of each topic."""
        found: dict[str, Any] = {}
        for portion in _portions(dict.fromkeys(topics)):
            request = describe_configs.DescribeConfigsRequest(
                resources=[
                    describe_configs.DescribeConfigsResource(
                        resource_type=TOPIC, resource_name=name, configuration_keys=list(keys)
                    )
                    for name in portion
                ]
            )
            for result in self._client.call(request, 4).results:
                found[result.resource_name] = {
                    each.name: (each.value, each.config_source, each.read_only)
                    for each in result.configs
                }
        return found

    def produce(
        self,
        batches: Mapping[str, bytes],
        version: int,
        acks: int = -1,
        transactional_id: str | None = None,
    ) -> dict[str, Any]:
        """Sends one batch to each topic."""
        answers: dict[str, Any] = {}
        has_ids = version >= TOPIC_IDS_SINCE
        names = {topic_id: name for name, topic_id in self._ids.items()}
        for portion in _portions(batches):
            topics = [
                produce.TopicProduceData(
                    name=name,
                    topic_id=self._ids[name] if has_ids else NO_ID,
                    partition_data=[produce.PartitionProduceData(index=0, records=records)],
                )
                for name, records in portion.items()
            ]
            request = produce.ProduceRequest(
                transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=topics
            )
            for each in self._client.call(request, version).responses:
                name = names[each.topic_id] if has_ids else each.name
                answers[name] = each.partition_responses[0]
        return answers

    def delete_records(self, offsets: Mapping[str, int]) -> dict[str, Any]:
        """Deletes the records before the offsets."""
        answers: dict[str, Any] = {}
        for portion in _portions(offsets):
            topics = [
                delete_records.DeleteRecordsTopic(
                    name=name,
                    partitions=[
                        delete_records.DeleteRecordsPartition(partition_index=0, offset=at)
                    ],
                )
                for name, at in portion.items()
            ]
            request = delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
            for each in self._client.call(request, 2).topics:
                answers[each.name] = each.partitions[0]
        return answers

    def list_offsets(
        self, times: Mapping[str, int], version: int, isolation: int = 0
    ) -> dict[str, Any]:
        """Asks for the offset that belongs to a time."""
        answers: dict[str, Any] = {}
        for portion in _portions(times):
            topics = [
                list_offsets.ListOffsetsTopic(
                    name=name,
                    partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=at)],
                )
                for name, at in portion.items()
            ]
            request = list_offsets.ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=5000
            )
            for each in self._client.call(request, version).topics:
                answers[each.name] = each.partitions[0]
        return answers

    def fetch(self, offsets: Mapping[str, tuple[int, int]], version: int) -> dict[str, Any]:
        """Fetches from an offset on, with a limit of bytes, in each topic."""
        answers: dict[str, Any] = {}
        for portion in _portions(offsets):
            topics = [
                fetch.FetchTopic(
                    topic=name,
                    partitions=[
                        fetch.FetchPartition(
                            partition=0, fetch_offset=offset, partition_max_bytes=limit
                        )
                    ],
                )
                for name, (offset, limit) in portion.items()
            ]
            request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
            for each in self._client.call(request, version).responses:
                answers[each.topic] = each.partitions[0]
        return answers

    def epoch_ends(self, topics: Sequence[str], epoch: int) -> dict[str, Any]:
        """Asks where a leader epoch ended."""
        answers: dict[str, Any] = {}
        for portion in _portions(dict.fromkeys(topics)):
            asked = [
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=name,
                    partitions=[
                        offset_for_leader_epoch.OffsetForLeaderPartition(
                            partition=0, leader_epoch=epoch
                        )
                    ],
                )
                for name in portion
            ]
            request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                replica_id=-1, topics=asked
            )
            for each in self._client.call(request, 4).topics:
                answers[each.topic] = each.partitions[0]
        return answers


def _creatable(name: str, settings: Settings) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            create_topics.CreatableTopicConfig(name=key, value=value)
            for key, value in settings.items()
        ],
    )


def _alteration(name: str, settings: Settings) -> incremental_alter_configs.AlterConfigsResource:
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=key, config_operation=int(value is None), value=value
            )
            for key, value in settings.items()
        ],
    )


def _portions(topics: Mapping[str, T]) -> Iterator[dict[str, T]]:
    rows = list(topics.items())
    for first in range(0, len(rows), TOPICS_AT_A_TIME):
        yield dict(rows[first : first + TOPICS_AT_A_TIME])
