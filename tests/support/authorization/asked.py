"""Requests aimed at names: built for any API and version from its schema, field by field name.

A field is looked up by `Api.field`, then by its name alone; a name of a topic, group or
transaction comes from the aim; everything else is its type's least value. An array whose elements
bear such a name has one element for each name that is aimed at, any other has one. A field that
is tagged keeps its default.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from construct import Construct, FormatField

from protocol.api import Api
from protocol.schema import struct_of
from protocol.structs import MessageStruct, NullableStruct, TagSection
from protocol.types import Array, RecordsType, StringType, UuidType
from tests.support.authorization import scene
from tests.support.worlds.handler_world import batch

ZERO, UNKNOWN = UUID(int=0), UUID(int=0x0DD)
NOBODY = 1_234_567
"""A producer id that no broker gave."""
GATE = "has no right of its own: the gate before all others answers it"
UNASKED = {"SaslHandshake": GATE, "SaslAuthenticate": GATE}
"""APIs that are not asked, and why."""


@dataclass(frozen=True)
class Aim:
    """The names in a request. `ids` are the topics' ids, `hmacs` those of tokens, by name.

    Owners of tokens are called as groups are.
    """

    label: str
    topics: tuple[str, ...] = (scene.GUARDED,)
    groups: tuple[str, ...] = (scene.GUARDED,)
    transactions: tuple[str, ...] = (scene.GUARDED,)
    fields: Mapping[str, Any] = field(default_factory=dict)
    by_id: bool = False
    ids: Mapping[str, UUID] = field(default_factory=dict)
    hmacs: Mapping[str, bytes] = field(default_factory=dict)
    since: int = 0
    until: int = 99

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of a kind of resource."""
        found: tuple[str, ...] = getattr(self, "groups" if kind == "owners" else kind)
        return found

    def with_ids(self, ids: Mapping[str, UUID], hmacs: Mapping[str, bytes]) -> "Aim":
        """The same, where topics and tokens have these ids and HMACs."""
        return replace(self, ids=ids, hmacs=hmacs)


GONE_MEMBER = {"OffsetCommit.member_id": "nobody", "OffsetCommit.generation_id_or_member_epoch": 5}
"""An offset for a group that is missing would make it."""
TOO_LONG = {"InitProducerId.transaction_timeout_ms": 2**31 - 1}
"""So would a transactional id."""


def _everywhere(label: str, name: str, **how: Any) -> Aim:
    return Aim(label, (name,), (name,), (name,), **how)


COMMON = (
    _everywhere("guarded", scene.GUARDED),
    _everywhere("open", scene.OPEN),
    _everywhere("missing", scene.MISSING, fields=GONE_MEMBER | TOO_LONG),
    Aim("several", *((scene.GUARDED, scene.OPEN, scene.MISSING),) * 3),
)
DELETING = (
    _everywhere("guarded", scene.DOOMED),
    _everywhere("open", scene.OPEN_DOOMED),
    _everywhere("missing", scene.MISSING),
    Aim("several", *((scene.DOOMED, scene.OPEN_DOOMED, scene.MISSING),) * 3),
)
TOPIC_RESOURCE, BROKER_RESOURCE, GROUP_RESOURCE = 2, 4, 32
GROUP_KEY = {"configuration_keys": ["consumer.session.timeout.ms"]}
GROUP_CONFIG = {"resource_type": GROUP_RESOURCE, "Config.name": "consumer.session.timeout.ms"}
GROUP_CONFIG |= {"Config.value": "50000"}
BROKER_CONFIG = {
    "resource_type": BROKER_RESOURCE, "resource_name": "1",
    "Config.name": "log.cleaner.threads", "Config.value": "1",
}  # fmt: skip
BROKER_KEY = {"configuration_keys": ["log.cleaner.threads"]}
BY_ID = (
    Aim("guarded by id", by_id=True),
    Aim("open by id", (scene.OPEN,), by_id=True),
    Aim("unknown id", (scene.MISSING,), by_id=True),
)
DOOMED_BY_ID = (
    Aim("guarded by id", (scene.DOOMED,), by_id=True),
    Aim("open by id", (scene.OPEN_DOOMED,), by_id=True),
    Aim("unknown id", (scene.MISSING,), by_id=True),
)
TWICE = (Aim("twice", (scene.GUARDED, scene.GUARDED, scene.OPEN)),)
INTERNAL = "__consumer_offsets"
CONFIGS = (
    Aim("unknown type", (scene.GUARDED, scene.OPEN), fields={"resource_type": 77}),
    Aim("broker", fields=BROKER_CONFIG | BROKER_KEY),
    Aim("group", fields=GROUP_CONFIG | GROUP_KEY),
)
MORE: dict[str, tuple[Aim, ...]] = {
    "Metadata": (
        *(replace(aim, since=12) for aim in BY_ID),
        Aim("all", fields={"topics": None}, since=1),
    ),
    "DescribeTopicPartitions": (Aim("all", fields={"topics": []}),),
    "OffsetFetch": (Aim("all", fields={"topics": None}, since=2),),
    "FindCoordinator": tuple(
        replace(aim, label=f"transaction {aim.label}", fields={"key_type": 1}, since=1)
        for aim in COMMON
    ),
    "InitProducerId": (Aim("no id", fields={"transactional_id": None}),),
    "Produce": (
        Aim("transaction", fields={"transactional_id": scene.GUARDED, "records": "transactional"},
            since=3),
        Aim("null transaction", fields={"records": "transactional"}, since=3),
        Aim("internal", (INTERNAL,), until=12),
    ),
    "AddPartitionsToTxn": (Aim("internal", (INTERNAL,), until=3),),
    "Fetch": (
        Aim("replica", (scene.GUARDED, scene.OPEN, scene.MISSING), fields={"replica_id": 7},
            until=14),
    ),
    "SyncGroup": (
        Aim("no protocol", fields={"protocol_type": None, "protocol_name": None}, since=5),
    ),
    "CreateTopics": TWICE,
    "CreatePartitions": TWICE,
    "DescribeConfigs": CONFIGS,
    # Kafka never answers an AlterConfigs that names a resource twice.
    "AlterConfigs": CONFIGS,
    "IncrementalAlterConfigs": (*CONFIGS, *TWICE),
    "DeleteTopics": (
        *(replace(aim, since=6) for aim in DOOMED_BY_ID),
        Aim("twice", (scene.DOOMED, scene.DOOMED, scene.OPEN_DOOMED)),
    ),
    "CreateDelegationToken": (
        Aim("own", fields={"owner_principal_type": None, "owner_principal_name": None}, since=3),
        Aim("no user renews", fields={"CreatableRenewers.principal_type": "Group"}),
    ),
    "DescribeDelegationToken": (
        Aim("all", fields={"owners": None}),
        Aim("nobody", fields={"owners": []}),
        Aim("renewer", groups=("implied",)),
        Aim("requester", groups=(scene.SUPER,)),
    ),
    "ConsumerGroupDescribe": (Aim("live", groups=(scene.LIVE,)),),
}  # fmt: skip
DESTROYING = {"DeleteTopics", "DeleteGroups", "OffsetDelete"}
"""APIs that take away what they are aimed at."""


def aims(api: Api, version: int) -> Iterator[Aim]:
    """The aims of a version of an API."""
    usual = DELETING if api.name in DESTROYING else COMMON
    yield from usual
    yield from (aim for aim in MORE.get(api.name, ()) if aim.since <= version <= aim.until)


POOLS = {
    "topics": (
        "topic", "topic_name", "topic_id", "topic_names", "subscribed_topic_names",
        "source_topics", "repartition_sink_topics",
    ),
    "groups": ("group_id", "groups_names", "group_ids"),
    "transactions": (
        "transactional_id", "transactional_ids", "v3_and_below_transactional_id",
    ),
    "owners": ("owner_principal_name", "principal_name"),
}  # fmt: skip
SPECIAL = {
    "Produce.transactional_id": None,
    "Produce.acks": 1,
    "DescribeGroups.groups": "groups",
    "FindCoordinator.key": "groups",
    "FindCoordinator.coordinator_keys": "groups",
    "CreatePartitions.count": 2,
    "CreateTopics.num_partitions": 1,
    "CreateTopics.replication_factor": 1,
    "CreateTopics.assignments": [],
    "CreateTopics.configs": [],
    "CreatePartitions.assignments": None,
    "OffsetCommit.generation_id_or_member_epoch": -1,
    "OffsetCommit.member_id": "",
    "TxnOffsetCommit.generation_id": -1,
    "TxnOffsetCommit.member_id": "",
    "OffsetFetch.member_id": None,
    "OffsetFetch.member_epoch": -1,
    "InitProducerId.producer_id": -1,
    "InitProducerId.producer_epoch": -1,
    "JoinGroup.member_id": "",
    "ConsumerGroupHeartbeat.member_epoch": 5,
    "ConsumerGroupHeartbeat.topic_partitions": [],
    "ConsumerGroupHeartbeat.subscribed_topic_regex": None,
    "ConsumerGroupHeartbeat.rebalance_timeout_ms": 30_000,
    "StreamsGroupHeartbeat.member_epoch": 5,
    "StreamsGroupHeartbeat.instance_id": None,
    "StreamsGroupHeartbeat.task_offsets": None,
    "StreamsGroupHeartbeat.task_end_offsets": None,
    "StreamsGroupHeartbeat.active_tasks": None,
    "StreamsGroupHeartbeat.standby_tasks": None,
    "StreamsGroupHeartbeat.warmup_tasks": None,
    "StreamsGroupHeartbeat.source_topic_regex": [],
    "StreamsGroupHeartbeat.copartition_groups": [],
    "StreamsGroupHeartbeat.rebalance_timeout_ms": 30_000,
    "ListTransactions.state_filters": [],
    "ListTransactions.producer_id_filters": [],
    "ListTransactions.duration_filter": -1,
    "ListGroups.states_filter": [],
    "ListGroups.types_filter": [],
    "DescribeClientQuotas.components": [],
    "DescribeTopicPartitions.cursor": None,
    "DescribeTopicPartitions.response_partition_limit": 2000,
    "Fetch.forgotten_topics_data": [],
    "Fetch.session_epoch": -1,
    "Fetch.max_wait_ms": 0,
    "AlterPartitionReassignments.replicas": [1],
    "DescribeCluster.endpoint_type": 1,
    "AlterClientQuotas.entity_type": "client-id",
    "AlterClientQuotas.entity_name": "somebody",
    "AlterClientQuotas.key": "producer_byte_rate",
    "AlterClientQuotas.value": 1e9,
    "JoinGroup.session_timeout_ms": 1,
    "CreateDelegationToken.owner_principal_type": "User",
    "CreateDelegationToken.max_lifetime_ms": -1,
    "CreatableRenewers.principal_name": scene.SUPER,
    "RenewDelegationToken.renew_period_ms": -1,
    "ExpireDelegationToken.expiry_time_period_ms": 10**9,
    "JoinGroupRequestProtocol.name": "range",
    "AlterUserScramCredentials.upsertions": [],
    "AlterUserScramCredentials.mechanism": 1,
    "UpdateFeatures.feature": "share.version",
    "UpdateFeatures.max_version_level": 1,
    "UpdateFeatures.upgrade_type": 1,
    "DescribeAcls.resource_type_filter": 2,
    "DescribeAcls.resource_name_filter": scene.GUARDED,
    "DescribeAcls.pattern_type_filter": scene.LITERAL,
    "DescribeAcls.principal_filter": "User:exact",
    "DescribeAcls.operation": scene.ANY,
    "DescribeAcls.permission_type": scene.ANY,
    "CreateAcls.resource_pattern_type": scene.LITERAL,
    "CreateAcls.principal": "User:nobody",
    "CreateAcls.host": "*",
    "CreateAcls.operation": scene.READ,
    "CreateAcls.permission_type": scene.ALLOW,
    "DeleteAcls.resource_type_filter": 2,
    "DeleteAcls.resource_name_filter": scene.GUARDED,
    "DeleteAcls.pattern_type_filter": scene.LITERAL,
    "DeleteAcls.principal_filter": "User:nobody-at-all",
    "DeleteAcls.operation": scene.ANY,
    "DeleteAcls.permission_type": scene.ANY,
}
PLAIN = {
    "replica_id": -1,
    "timeout_ms": 9000,
    "timestamp": -1,
    "max_num_offsets": 1,
    "partition_max_bytes": 1 << 16,
    "max_bytes": 1 << 16,
    "leader_epoch": 0,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "committed_leader_epoch": -1,
    "retention_time_ms": -1,
    "transaction_timeout_ms": 60_000,
    "producer_id": NOBODY,
    "v3_and_below_producer_id": NOBODY,
    "generation_id": 5,
    "member_id": "nobody",
    "group_instance_id": None,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "protocol_name": "range",
    "validate_only": True,
    "include_topic_authorized_operations": True,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "resource_type": TOPIC_RESOURCE,
    "configuration_keys": ["retention.ms"],
    "Config.name": "retention.ms",
    "Config.value": "777777777",
    "principal_type": "User",
    "client_software_name": "matrix",
    "client_software_version": "1",
}


def request_for(api: Api, version: int, aim: Aim) -> Any:
    """The request of that version, aimed."""
    return _Builder(api, aim).struct(struct_of(api.request, version), {})


class _Builder:
    """One request; a `scope` holds the names that the array elements around a field are for."""

    def __init__(self, api: Api, aim: Aim) -> None:
        self.api, self.aim = api, aim

    def struct(self, struct: MessageStruct, scope: dict[str, str]) -> Any:
        parts = [part for part in struct.subcons if not isinstance(part.subcon, TagSection)]
        owner = struct.cls.__name__
        values = {part.name: self._field(owner, part.name, part.subcon, scope) for part in parts}
        if self.aim.by_id and {"name", "topic_id"} <= values.keys():
            values["name"] = None
        elif {"name", "topic_id"} <= values.keys():
            values["topic_id"] = ZERO
        return struct.cls(**values)

    def _field(self, owner: str, name: str, wire: Construct, scope: dict[str, str]) -> Any:
        given = self._given(owner, name)
        if given == "transactional" and name == "records":
            return bytes(_records(transactional=True))
        if name == "hmac":
            return self.aim.hmacs.get(self._one("owners", scope), b"of no token")
        if given == "groups":
            return self._names("groups", wire, scope)
        if given is not _NOTHING:
            return given
        pool = self._pool(owner, name)
        if isinstance(wire, UuidType):
            return self.aim.ids.get(self._one("topics", scope), UNKNOWN)
        if pool:
            return self._names(pool, wire, scope)
        return self._value(name, wire, scope)

    def _given(self, owner: str, name: str) -> Any:
        """The value that a table gives a field; the aim's comes first."""
        kind = "Config" if owner.endswith("Config") else owner
        keys = (f"{self.api.name}.{name}", f"{kind}.{name}", name)
        for table in (self.aim.fields, SPECIAL, PLAIN):
            for key in keys:
                if key in table:
                    return table[key]
        return _NOTHING

    def _pool(self, owner: str, name: str) -> str | None:
        """The kind of resource that a field names."""
        if name in {"name", "resource_name"} and ("Config" not in owner or "Resource" in owner):
            return "topics"
        return next((pool for pool, fields in POOLS.items() if name in fields), None)

    def _names(self, pool: str, wire: Construct, scope: dict[str, str]) -> Any:
        return list(self.aim.names(pool)) if isinstance(wire, Array) else self._one(pool, scope)

    def _one(self, pool: str, scope: dict[str, str]) -> str:
        return scope.get(pool) or self.aim.names(pool)[0]

    def _value(self, name: str, wire: Construct, scope: dict[str, str]) -> Any:
        match wire:
            case RecordsType():
                return bytes(_records(transactional=False))
            case FormatField():
                return 0
            case Array():
                return self._elements(name, wire, scope)
            case NullableStruct():
                return self.struct(wire.struct, scope)
            case MessageStruct():
                return self.struct(wire, scope)
        if wire.nullable:
            return None
        return "" if isinstance(wire, StringType) else b""

    def _elements(self, name: str, wire: Array, scope: dict[str, str]) -> list[Any]:
        element = wire.element
        if not isinstance(element, MessageStruct):
            return [self._value(name, element, scope)]
        owner = element.cls.__name__
        free = [part for part in element.subcons if self._given(owner, part.name) is _NOTHING]
        pools = {self._pool(owner, part.name) for part in free}
        for pool in POOLS:
            if pool in pools and pool not in scope:
                names = self.aim.names(pool)
                return [self.struct(element, scope | {pool: each}) for each in names]
        return [self.struct(element, scope)]


_NOTHING = object()


def _records(*, transactional: bool) -> bytearray:
    """A batch of one record, of no producer or of one in a transaction."""
    if not transactional:
        return batch(b"v", at=1_700_000_000_000)
    who = {"producer_id": NOBODY, "producer_epoch": 0, "base_sequence": 0}
    return batch(b"v", at=1_700_000_000_000, transactional=True, **who)
