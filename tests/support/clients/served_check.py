"""One known request for each API that is served, and its known answer.

`check_every_api` asks a broker over the wire, with names that carry `mark`, so that it can be asked
again and again; AssertionError tells which answer is not the one that a sound broker gives.
"""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from protocol.records.record import read_records
from tests.support.clients.plain_talk import Talk
from tests.support.clients.served_apis import served_apis
from tests.support.worlds.handler_world import batch

TOPIC = 2
SESSION_MS = 6000
TRIES, SOON_SECONDS = 500, 0.01
Advance = Callable[[int], Awaitable[Any]]


class Checked:
    """A check of one broker."""

    def __init__(self, talk: Talk, mark: str, now_ms: int, advance: Advance) -> None:
        """`advance(ms)` lets time pass for the broker; `now_ms` is its clock's."""
        self.talk, self.mark, self.now_ms, self._advance = talk, mark, now_ms, advance
        self.topic, self.group, self.transactional_id = f"good-{mark}", f"g-{mark}", f"x-{mark}"
        self.topic_id = UUID(int=0)

    async def every_api(self) -> None:
        await self._cluster()
        await self._topic()
        await self._records()
        await self._settings()
        await self._quotas()
        await self._acls()
        await self._users()
        await self._delegation_tokens()
        await self._group()
        await self._consumer_group()
        await self._streams_group()
        await self._share_states()
        await self._share_group()
        await self._transactions()
        await self._sessions_end()
        await self._farewell()
        unasked = {api.name for api in served_apis().values()} - self.talk.asked
        assert not unasked, f"nobody asked {sorted(unasked)}"

    async def _ask(self, name: str, version: int, **values: Any) -> Any:
        try:
            return await self.talk.ask(name, version, **values)
        except (OSError, EOFError, TimeoutError) as error:
            raise AssertionError(f"{name} v{version} is not answered: {error!r}") from error

    async def _cluster(self) -> None:
        versions = await self._ask(
            "ApiVersions", 3, client_software_name="check", client_software_version="1"
        )
        same("ApiVersions", (versions.error_code, len(versions.api_keys)), (0, len(served_apis())))
        sasl = await self._ask("SaslHandshake", 1, mechanism="PLAIN")
        same("SaslHandshake, without SASL", sasl.error_code, ErrorCode.ILLEGAL_SASL_STATE)
        cluster = await self._ask("DescribeCluster", 1, endpoint_type=1)
        same("DescribeCluster", (cluster.error_code, len(cluster.brokers)), (0, 1))
        metadata = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
        quorum = await self._ask("DescribeQuorum", 2, topics=[metadata])
        (part,) = quorum.topics[0].partitions
        voters = [each.replica_id for each in part.current_voters]
        same("DescribeQuorum", (part.error_code, voters), (0, [part.leader_id]))
        level = {"feature": "metadata.version", "max_version_level": 30}
        updated = await self._ask("UpdateFeatures", 2, feature_updates=[level])
        same("UpdateFeatures", (updated.error_code, updated.error_message), (0, None))

    async def _topic(self) -> None:
        made = {"name": self.topic, "num_partitions": 1, "replication_factor": 1}
        (topic,) = (await self._ask("CreateTopics", 7, topics=[made])).topics
        same("CreateTopics", (topic.error_code, topic.error_message), (0, None))
        self.topic_id = topic.topic_id
        more = {"name": self.topic, "count": 2}
        grown = await self._ask("CreatePartitions", 3, topics=[more])
        same("CreatePartitions", grown.results[0].error_code, 0)
        told = await self._metadata()
        same("Metadata", (told.error_code, len(told.partitions)), (0, 2))
        (told,) = (
            await self._ask("DescribeTopicPartitions", 0, topics=[{"name": self.topic}])
        ).topics
        same("DescribeTopicPartitions", (told.error_code, len(told.partitions)), (0, 2))
        dirs = await self._ask("DescribeLogDirs", 4, topics=self._parts())
        same("DescribeLogDirs", (dirs.error_code, dirs.results[0].error_code), (0, 0))
        moved = [{"path": "/elsewhere", "topics": [{"name": self.topic, "partitions": [0]}]}]
        (found,) = (await self._ask("AlterReplicaLogDirs", 2, dirs=moved)).results
        same("AlterReplicaLogDirs", found.partitions[0].error_code, ErrorCode.LOG_DIR_NOT_FOUND)
        elected = await self._ask("ElectLeaders", 2, topic_partitions=self._parts())
        (result,) = elected.replica_election_results
        found = {each.error_code for each in result.partition_result}
        same("ElectLeaders", found, {ErrorCode.ELECTION_NOT_NEEDED})
        moved = [{"name": self.topic, "partitions": [{"partition_index": 0, "replicas": [1]}]}]
        answer = await self._ask("AlterPartitionReassignments", 1, topics=moved)
        codes = answer.error_code, answer.responses[0].partitions[0].error_code
        same("AlterPartitionReassignments", codes, (0, 0))
        moving = await self._ask("ListPartitionReassignments", 0)
        same("ListPartitionReassignments", (moving.error_code, moving.topics), (0, []))

    async def _metadata(self) -> Any:
        asked = {"topics": [{"name": self.topic}], "allow_auto_topic_creation": False}
        return (await self._ask("Metadata", 12, **asked)).topics[0]

    def _parts(self) -> list[dict[str, Any]]:
        return [{"topic": self.topic, "partitions": [0]}]

    async def _produce(self, version: int, records: bytearray, **how: Any) -> Any:
        data = [{"name": self.topic, "partition_data": [{"index": 0, "records": records}]}]
        answer = await self._ask(
            "Produce", version, acks=-1, timeout_ms=9000, topic_data=data, **how
        )
        return answer.responses[0].partition_responses[0]

    async def _values(self, isolation: int) -> list[bytes]:
        asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
        answer = await self._ask(
            "Fetch", 12, min_bytes=0, max_bytes=1 << 20, isolation_level=isolation,
            topics=[{"topic": self.topic, "partitions": [asked]}],
        )  # fmt: skip
        part = answer.responses[0].partitions[0]
        same("Fetch", (answer.error_code, part.error_code), (0, 0))
        data = memoryview(part.records or b"")
        return [
            record.value or b""
            for at, header in iter_headers(data)
            if not header.is_control
            for record in read_records(data[at : at + header.size_bytes])
        ]

    async def _records(self) -> None:
        stored = await self._produce(12, batch(b"a", b"b", b"c", at=self.now_ms))
        same("Produce", (stored.error_code, stored.base_offset), (0, 0))
        same("Fetch", await self._values(0), [b"a", b"b", b"c"])
        asked = {"name": self.topic, "partitions": [{"timestamp": self.now_ms + 1}]}
        listed = await self._ask("ListOffsets", 7, replica_id=-1, topics=[asked])
        part = listed.topics[0].partitions[0]
        found = part.error_code, part.timestamp, part.offset
        same("ListOffsets by time", found, (0, self.now_ms + 1, 1))
        epochs = {"topic": self.topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}
        ended = await self._ask("OffsetForLeaderEpoch", 4, topics=[epochs])
        part = ended.topics[0].partitions[0]
        same("OffsetForLeaderEpoch", (part.error_code, part.end_offset), (0, 3))
        made = await self._ask("InitProducerId", 4, transactional_id=None)
        same("InitProducerId", made.error_code, 0)
        who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        stored = await self._produce(12, batch(b"d", at=self.now_ms, base_sequence=0, **who))
        same("Produce of an idempotent producer", (stored.error_code, stored.base_offset), (0, 3))
        place = {"name": self.topic, "partition_indexes": [0]}
        active = await self._ask("DescribeProducers", 0, topics=[place])
        part = active.topics[0].partitions[0]
        known = part.error_code, [each.producer_id for each in part.active_producers]
        same("DescribeProducers", known, (0, [made.producer_id]))

    async def _settings(self) -> None:
        one = {"resource_type": TOPIC, "resource_name": self.topic}
        wanted = {"name": "retention.ms", "value": "777777777"}
        altered = await self._ask("IncrementalAlterConfigs", 1, resources=[one | configs(wanted)])
        same("IncrementalAlterConfigs", altered.responses[0].error_code, 0)
        await self._setting(one, "777777777")
        wanted = {"name": "retention.ms", "value": "888888888"}
        altered = await self._ask("AlterConfigs", 2, resources=[one | configs(wanted)])
        same("AlterConfigs", altered.responses[0].error_code, 0)
        await self._setting(one, "888888888")
        listed = await self._ask("ListConfigResources", 1, resource_types=[TOPIC])
        names = {each.resource_name for each in listed.config_resources}
        same("ListConfigResources", (listed.error_code, self.topic in names), (0, True))

    async def _setting(self, one: dict[str, Any], wanted: str) -> None:
        asked = one | {"configuration_keys": ["retention.ms"]}
        (told,) = (await self._ask("DescribeConfigs", 4, resources=[asked])).results
        found = told.error_code, [each.value for each in told.configs]
        same("DescribeConfigs", found, (0, [wanted]))

    async def _quotas(self) -> None:
        entity = [{"entity_type": "user", "entity_name": f"u-{self.mark}"}]
        asked = {"entity_type": "user", "match_type": 0, "match": f"u-{self.mark}"}
        for remove, values in ((False, [5e6]), (True, [])):
            ops = [{"key": "producer_byte_rate", "value": 5e6, "remove": remove}]
            entry = {"entity": entity, "ops": ops}
            altered = await self._ask("AlterClientQuotas", 1, entries=[entry])
            same("AlterClientQuotas", altered.entries[0].error_code, 0)
            told = await self._ask("DescribeClientQuotas", 1, components=[asked])
            found = [value.value for each in told.entries or [] for value in each.values]
            same("DescribeClientQuotas", (told.error_code, found), (0, values))

    async def _acls(self) -> None:
        """Nobody who is damaged has switched access control on."""
        anything = {"resource_type_filter": 1, "pattern_type_filter": 1}
        asked = anything | {"operation": 1, "permission_type": 1}
        off = ErrorCode.SECURITY_DISABLED
        same("DescribeAcls", (await self._ask("DescribeAcls", 3, **asked)).error_code, off)
        entry = {"resource_type": 2, "resource_name": self.topic, "principal": "User:a"}
        entry |= {"host": "*", "operation": 3, "permission_type": 3}
        created = await self._ask("CreateAcls", 3, creations=[entry])
        same("CreateAcls", created.results[0].error_code, off)
        deleted = await self._ask("DeleteAcls", 3, filters=[asked])
        same("DeleteAcls", deleted.filter_results[0].error_code, off)

    async def _users(self) -> None:
        name = f"u-{self.mark}"
        credential = {"name": name, "mechanism": 1, "iterations": 4096, "salt": b"salt"}
        credential |= {"salted_password": bytes(32)}
        for change in (
            {"upsertions": [credential]},
            {"deletions": [{"name": name, "mechanism": 1}]},
        ):
            altered = await self._ask("AlterUserScramCredentials", 0, **change)
            same("AlterUserScramCredentials", altered.results[0].error_code, 0)
            described = await self._ask("DescribeUserScramCredentials", 0, users=[{"name": name}])
            found = described.results[0].error_code
            gone = "deletions" in change
            same("DescribeUserScramCredentials", found, ErrorCode.RESOURCE_NOT_FOUND * gone)
        alone = await self._ask("SaslAuthenticate", 2, auth_bytes=b"")
        same("SaslAuthenticate, without SASL", alone.error_code, ErrorCode.ILLEGAL_SASL_STATE)

    async def _delegation_tokens(self) -> None:
        """A client that nobody knows may neither make nor see one."""
        for name, version, asked in (
            ("CreateDelegationToken", 3, {}),
            ("RenewDelegationToken", 2, {"hmac": b"h"}),
            ("ExpireDelegationToken", 2, {"hmac": b"h"}),
            ("DescribeDelegationToken", 3, {}),
        ):
            answer = await self._ask(name, version, **asked)
            refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            same(f"{name}, in the clear", answer.error_code, refused)

    async def _joined(self, group: str) -> tuple[str, int]:
        """A member by itself, with its part; its id and generation."""
        asked = {
            "group_id": group, "session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": 30_000,
            "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"r"}],
        }  # fmt: skip
        first = await self._ask("JoinGroup", 9, **asked)
        same("JoinGroup, first", first.error_code, ErrorCode.MEMBER_ID_REQUIRED)
        joined = await self._ask("JoinGroup", 9, **asked, member_id=first.member_id)
        same("JoinGroup", (joined.error_code, joined.leader), (0, first.member_id))
        who = {"group_id": group, "member_id": first.member_id}
        who |= {"generation_id": joined.generation_id}
        parts = [{"member_id": first.member_id, "assignment": b"all"}]
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        synced = await self._ask("SyncGroup", 5, **who, **protocol, assignments=parts)
        same("SyncGroup", (synced.error_code, synced.assignment), (0, b"all"))
        beat = await self._ask("Heartbeat", 4, **who)
        same("Heartbeat", beat.error_code, 0)
        return joined.member_id, joined.generation_id

    async def _group(self) -> None:
        asked = {"coordinator_keys": [self.group], "key_type": 0}
        (found,) = (await self._ask("FindCoordinator", 4, **asked)).coordinators
        same("FindCoordinator of a group", (found.error_code, found.node_id), (0, 1))
        member, generation = await self._joined(self.group)
        offset = {"partition_index": 0, "committed_offset": 2, "committed_metadata": "m"}
        committed = await self._ask(
            "OffsetCommit", 9, group_id=self.group, member_id=member,
            generation_id_or_member_epoch=generation,
            topics=[{"name": self.topic, "partitions": [offset]}],
        )  # fmt: skip
        same("OffsetCommit", committed.topics[0].partitions[0].error_code, 0)
        await self._offset(2)
        (told,) = (await self._ask("DescribeGroups", 5, groups=[self.group])).groups
        found = told.error_code, told.group_state, [each.member_id for each in told.members]
        same("DescribeGroups", found, (0, "Stable", [member]))
        listed = await self._ask("ListGroups", 5)
        assert self.group in {each.group_id for each in listed.groups}, "ListGroups: not there"
        gone = await self._ask(
            "LeaveGroup", 5, group_id=self.group, members=[{"member_id": member}]
        )
        same("LeaveGroup", (gone.error_code, gone.members[0].error_code), (0, 0))
        parts = [{"name": self.topic, "partitions": [{"partition_index": 0}]}]
        deleted = await self._ask("OffsetDelete", 0, group_id=self.group, topics=parts)
        same("OffsetDelete", deleted.error_code, 0)
        await self._offset(-1)

    async def _offset(self, wanted: int) -> None:
        """Checks the committed offset; markers are written behind the answer to EndTxn."""
        topics = [{"name": self.topic, "partition_indexes": [0]}]
        asked = [{"group_id": self.group, "topics": topics}]
        for _ in range(TRIES):
            answer = await self._ask("OffsetFetch", 9, groups=asked, require_stable=True)
            part = answer.groups[0].topics[0].partitions[0]
            if part.error_code != ErrorCode.UNSTABLE_OFFSET_COMMIT:
                break
            await asyncio.sleep(SOON_SECONDS)
        found = answer.groups[0].error_code, part.error_code, part.committed_offset
        same("OffsetFetch", found, (0, 0, wanted))

    async def _consumer_group(self) -> None:
        group = f"c-{self.mark}"
        who = {"group_id": group, "member_id": f"member-{self.mark}"}
        joined = await self._ask(
            "ConsumerGroupHeartbeat", 1, **who, member_epoch=0, rebalance_timeout_ms=30_000,
            subscribed_topic_names=[self.topic], topic_partitions=[],
        )  # fmt: skip
        same("ConsumerGroupHeartbeat", joined.error_code, 0)
        parts = [(each.topic_id, each.partitions) for each in joined.assignment.topic_partitions]
        same("its assignment", parts, [(self.topic_id, [0, 1])])
        (told,) = (await self._ask("ConsumerGroupDescribe", 1, group_ids=[group])).groups
        same("ConsumerGroupDescribe", (told.error_code, len(told.members)), (0, 1))
        left = await self._ask("ConsumerGroupHeartbeat", 1, **who, member_epoch=-1)
        same("ConsumerGroupHeartbeat, leaving", left.error_code, 0)

    async def _streams_group(self) -> None:
        group = f"tasks-{self.mark}"
        who = {"group_id": group, "member_id": "thread", "endpoint_information_epoch": 0}
        part = {"subtopology_id": "0", "source_topics": [self.topic]}
        joined = await self._ask(
            "StreamsGroupHeartbeat", 0, **who, member_epoch=0, rebalance_timeout_ms=30_000,
            topology={"epoch": 0, "subtopologies": [part]}, process_id="p",
            active_tasks=[], standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        same("StreamsGroupHeartbeat", joined.error_code, 0)
        (told,) = (await self._ask("StreamsGroupDescribe", 0, group_ids=[group])).groups
        same("StreamsGroupDescribe", (told.error_code, len(told.members)), (0, 1))
        left = await self._ask("StreamsGroupHeartbeat", 0, **who, member_epoch=-1)
        same("StreamsGroupHeartbeat, leaving", left.error_code, 0)

    async def _share_group(self) -> None:
        group = f"queue-{self.mark}"
        who = {"group_id": group, "member_id": "reader"}
        joined = await self._ask(
            "ShareGroupHeartbeat", 1, **who, member_epoch=0, subscribed_topic_names=[self.topic]
        )
        same("ShareGroupHeartbeat", joined.error_code, 0)
        (told,) = (await self._ask("ShareGroupDescribe", 1, group_ids=[group])).groups
        same("ShareGroupDescribe", (told.error_code, len(told.members)), (0, 1))
        partition = {"partition_index": 0, "acknowledgement_batches": []}
        topics = [{"topic_id": self.topic_id, "partitions": [partition]}]
        limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1000, "max_records": 10}
        limits |= {"batch_size": 10}
        fetched = await self._ask(
            "ShareFetch", 2, **who, share_session_epoch=0, **limits, topics=topics,
            forgotten_topics_data=[],
        )  # fmt: skip
        same("ShareFetch", fetched.error_code, 0)
        closed = await self._ask("ShareAcknowledge", 2, **who, share_session_epoch=-1, topics=[])
        same("ShareAcknowledge", closed.error_code, 0)
        left = await self._ask("ShareGroupHeartbeat", 1, **who, member_epoch=-1)
        same("ShareGroupHeartbeat, leaving", left.error_code, 0)
        await self._share_offsets(group)

    async def _share_offsets(self, group: str) -> None:
        start = {"partition_index": 0, "start_offset": 1}
        topics = [{"topic_name": self.topic, "partitions": [start]}]
        altered = await self._ask("AlterShareGroupOffsets", 0, group_id=group, topics=topics)
        (result,) = altered.responses[0].partitions
        same("AlterShareGroupOffsets", (altered.error_code, result.error_code), (0, 0))
        asked = [{"group_id": group, "topics": None}]
        (told,) = (await self._ask("DescribeShareGroupOffsets", 1, groups=asked)).groups
        starts = {each.partition_index: each.start_offset for each in told.topics[0].partitions}
        same("DescribeShareGroupOffsets", (told.error_code, starts[0]), (0, 1))
        forgotten = [{"topic_name": self.topic}]
        deleted = await self._ask("DeleteShareGroupOffsets", 0, group_id=group, topics=forgotten)
        codes = deleted.error_code, deleted.responses[0].error_code
        same("DeleteShareGroupOffsets", codes, (0, 0))

    async def _share_states(self) -> None:
        group = f"share-{self.mark}"
        text = urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode()
        asked = {"coordinator_keys": [f"{group}:{text}:1"], "key_type": 2}
        (found,) = (await self._ask("FindCoordinator", 6, **asked)).coordinators
        same("FindCoordinator of a share partition", (found.error_code, found.node_id), (0, 1))
        batch = {"first_offset": 3, "last_offset": 5, "delivery_state": 2, "delivery_count": 1}
        begun = {"state_epoch": 4, "start_offset": 3}
        change: dict[str, Any] = {"state_epoch": 4, "start_offset": 3}
        change |= {"delivery_complete_count": 3, "state_batches": [batch]}
        await self._share_state("Initialize", 0, group, begun)
        await self._share_state("Write", 1, group, change)
        read = await self._share_state("Read", 0, group, {})
        batches = [(each.first_offset, each.last_offset) for each in read.state_batches]
        same("ReadShareGroupState", (read.state_epoch, read.start_offset), (4, 3))
        same("ReadShareGroupState, batches", batches, [(3, 5)])
        told = await self._share_state("Read", 1, group, {}, "Summary")
        found = told.start_offset, told.delivery_complete_count
        same("ReadShareGroupStateSummary", found, (3, 3))
        await self._share_state("Delete", 0, group, {})

    async def _share_state(
        self, verb: str, version: int, group: str, values: dict[str, Any], more: str = ""
    ) -> Any:
        topic = {"topic_id": self.topic_id, "partitions": [{"partition": 1, **values}]}
        name = f"{verb}ShareGroupState{more}"
        answer = await self._ask(name, version, group_id=group, topics=[topic])
        (result,) = answer.results[0].partitions
        same(name, (result.error_code, result.error_message), (0, None))
        return result

    async def _transactions(self) -> None:
        x = self.transactional_id
        asked = {"coordinator_keys": [x], "key_type": 1}
        (found,) = (await self._ask("FindCoordinator", 4, **asked)).coordinators
        same("FindCoordinator of a transaction", (found.error_code, found.node_id), (0, 1))
        before = await self._values(1)
        made = await self._ask(
            "InitProducerId", 4, transactional_id=x, transaction_timeout_ms=60_000
        )
        same("InitProducerId of a transaction", made.error_code, 0)
        who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        old = {f"v3_and_below_{name}": value for name, value in who.items()}
        joined = await self._ask(
            "AddPartitionsToTxn", 3, v3_and_below_transactional_id=x, **old,
            v3_and_below_topics=[{"name": self.topic, "partitions": [0]}],
        )  # fmt: skip
        result = joined.results_by_topic_v3_and_below[0].results_by_partition[0]
        same("AddPartitionsToTxn", result.partition_error_code, 0)
        records = batch(b"t", at=self.now_ms, base_sequence=0, transactional=True, **who)
        stored = await self._produce(11, records, transactional_id=x)
        same("Produce in a transaction", stored.error_code, 0)
        same("Fetch of committed data", await self._values(1), before)
        await self._transaction_offsets(who)
        asked = await self._ask("DescribeTransactions", 0, transactional_ids=[x])
        (told,) = asked.transaction_states
        same("DescribeTransactions", (told.error_code, told.transaction_state), (0, "Ongoing"))
        listed = await self._ask("ListTransactions", 1, duration_filter=-1)
        names = {each.transactional_id for each in listed.transaction_states}
        assert x in names, "ListTransactions: not there"
        ended = await self._ask("EndTxn", 4, transactional_id=x, **who, committed=True)
        same("EndTxn", ended.error_code, 0)
        await self._becomes_visible([*before, b"t"])
        await self._offset(3)
        marker = {**who, "transaction_result": True, "coordinator_epoch": 0}
        marker["topics"] = [{"name": self.topic, "partition_indexes": [0]}]
        written = await self._ask("WriteTxnMarkers", 1, markers=[marker])
        code = written.markers[0].topics[0].partitions[0].error_code
        same("WriteTxnMarkers", code, 0)

    async def _transaction_offsets(self, who: dict[str, Any]) -> None:
        x = self.transactional_id
        named = {"transactional_id": x, "group_id": self.group, **who}
        added = await self._ask("AddOffsetsToTxn", 3, **named)
        same("AddOffsetsToTxn", added.error_code, 0)
        offset = {"partition_index": 0, "committed_offset": 3}
        topics = [{"name": self.topic, "partitions": [offset]}]
        told = await self._ask("TxnOffsetCommit", 3, **named, topics=topics)
        same("TxnOffsetCommit", told.topics[0].partitions[0].error_code, 0)

    async def _becomes_visible(self, wanted: list[bytes]) -> None:
        """Markers are written behind the answer."""
        for _ in range(TRIES):
            found = await self._values(1)
            if found == wanted:
                return
            await asyncio.sleep(SOON_SECONDS)
        same("Fetch of committed data", found, wanted)

    async def _sessions_end(self) -> None:
        """A member that is silent for longer than its session is put out."""
        silent = f"s-{self.mark}"
        await self._joined(silent)
        await self._advance(2 * SESSION_MS)
        (told,) = (await self._ask("DescribeGroups", 5, groups=[silent])).groups
        same("a silent member's group", (told.error_code, told.group_state), (0, "Empty"))
        deleted = await self._ask("DeleteGroups", 2, groups_names=[silent, self.group])
        same("DeleteGroups", [each.error_code for each in deleted.results], [0, 0])

    async def _farewell(self) -> None:
        asked = {"name": self.topic, "partitions": [{"partition_index": 0, "offset": 2}]}
        cut = await self._ask("DeleteRecords", 2, topics=[asked], timeout_ms=9000)
        part = cut.topics[0].partitions[0]
        same("DeleteRecords", (part.error_code, part.low_watermark), (0, 2))
        gone = await self._ask("DeleteTopics", 6, topics=[{"name": self.topic}], timeout_ms=9000)
        same("DeleteTopics", gone.responses[0].error_code, 0)
        told = await self._metadata()
        same("Metadata of what is gone", told.error_code, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def same(what: str, found: Any, wanted: Any) -> None:
    """AssertionError unless they are."""
    assert found == wanted, f"{what}: {found}, not {wanted}"


def configs(*each: dict[str, Any]) -> dict[str, Any]:
    """Settings of a resource."""
    return {"configs": list(each)}
