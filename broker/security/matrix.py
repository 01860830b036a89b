"""Matrix of authorization: what each API asks for before it answers, as in Kafka 4.3.

A handler asks by itself, in Kafka's order, since what a missing right does differs by API. This
table holds it to that: an answer without error for which none of its API's rights was asked for
closes the connection, and an API without a row is not served.
"""

from collections.abc import Mapping
from types import MappingProxyType

from broker.runtime.rights import MARKS
from protocol.acls import AclOperation, ResourceType

Right = tuple[AclOperation, ResourceType]

_T, _G, _X, _C, _D, _U = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.CLUSTER,
    ResourceType.DELEGATION_TOKEN,
    ResourceType.USER,
)
_O = AclOperation

OPEN: tuple[Right, ...] = ()
"""Open to every client that is let in at all: it tells about the broker, and nothing of others."""

MATRIX: Mapping[str, tuple[Right, ...]] = MappingProxyType(
    {
        "AddOffsetsToTxn": ((_O.WRITE, _X),),
        "AddPartitionsToTxn": ((_O.WRITE, _X), (_O.CLUSTER_ACTION, _C)),
        "AlterClientQuotas": ((_O.ALTER_CONFIGS, _C),),
        "AlterConfigs": ((_O.ALTER_CONFIGS, _T), (_O.ALTER_CONFIGS, _G), (_O.ALTER_CONFIGS, _C)),
        "AlterPartitionReassignments": ((_O.ALTER, _C),),
        "ApiVersions": OPEN,
        "ConsumerGroupDescribe": ((_O.DESCRIBE, _G),),
        "ConsumerGroupHeartbeat": ((_O.READ, _G),),
        "AlterReplicaLogDirs": ((_O.ALTER, _C),),
        "AlterShareGroupOffsets": ((_O.READ, _G),),
        "AlterUserScramCredentials": ((_O.ALTER, _C),),
        "CreateAcls": ((_O.ALTER, _C),),
        "CreateDelegationToken": ((_O.CREATE_TOKENS, _U),),
        "CreatePartitions": ((_O.ALTER, _T),),
        "CreateTopics": ((_O.CREATE, _C), (_O.CREATE, _T)),
        "DeleteAcls": ((_O.ALTER, _C),),
        "DeleteGroups": ((_O.DELETE, _G),),
        "DeleteRecords": ((_O.DELETE, _T),),
        "DeleteShareGroupOffsets": ((_O.DELETE, _G),),
        "DeleteShareGroupState": ((_O.CLUSTER_ACTION, _C),),
        "DeleteTopics": ((_O.DELETE, _C), (_O.DELETE, _T), (_O.DESCRIBE, _T)),
        "DescribeAcls": ((_O.DESCRIBE, _C),),
        "DescribeClientQuotas": ((_O.DESCRIBE_CONFIGS, _C),),
        "DescribeCluster": OPEN,
        "DescribeConfigs": (
            (_O.DESCRIBE_CONFIGS, _T),
            (_O.DESCRIBE_CONFIGS, _G),
            (_O.DESCRIBE_CONFIGS, _C),
        ),
        "DescribeDelegationToken": ((_O.DESCRIBE, _D), (_O.DESCRIBE_TOKENS, _U)),
        "DescribeGroups": ((_O.DESCRIBE, _G),),
        "DescribeLogDirs": ((_O.DESCRIBE, _C),),
        "DescribeProducers": ((_O.READ, _T),),
        "DescribeQuorum": ((_O.DESCRIBE, _C),),
        "DescribeShareGroupOffsets": ((_O.DESCRIBE, _G),),
        "DescribeTopicPartitions": ((_O.DESCRIBE, _T),),
        "DescribeTransactions": ((_O.DESCRIBE, _X),),
        "DescribeUserScramCredentials": ((_O.DESCRIBE, _C),),
        "ElectLeaders": ((_O.ALTER, _C),),
        "EndTxn": ((_O.WRITE, _X),),
        "ExpireDelegationToken": OPEN,  # the HMAC and the names in the token decide
        "Fetch": ((_O.READ, _T), (_O.CLUSTER_ACTION, _C)),
        "FindCoordinator": ((_O.DESCRIBE, _G), (_O.DESCRIBE, _X), (_O.CLUSTER_ACTION, _C)),
        "GetTelemetrySubscriptions": OPEN,
        "Heartbeat": ((_O.READ, _G),),
        "IncrementalAlterConfigs": (
            (_O.ALTER_CONFIGS, _T),
            (_O.ALTER_CONFIGS, _G),
            (_O.ALTER_CONFIGS, _C),
        ),
        "InitializeShareGroupState": ((_O.CLUSTER_ACTION, _C),),
        "InitProducerId": ((_O.WRITE, _X), (_O.IDEMPOTENT_WRITE, _C), (_O.WRITE, _T)),
        "JoinGroup": ((_O.READ, _G),),
        "LeaveGroup": ((_O.READ, _G),),
        "ListConfigResources": ((_O.DESCRIBE_CONFIGS, _C),),
        "ListGroups": ((_O.DESCRIBE, _C),),
        "ListOffsets": ((_O.DESCRIBE, _T),),
        "ListPartitionReassignments": ((_O.DESCRIBE, _C),),
        "ListTransactions": ((_O.DESCRIBE, _X),),
        "Metadata": ((_O.DESCRIBE, _T),),
        "OffsetCommit": ((_O.READ, _G),),
        "OffsetDelete": ((_O.DELETE, _G),),
        "OffsetFetch": ((_O.DESCRIBE, _G),),
        "OffsetForLeaderEpoch": ((_O.DESCRIBE, _T), (_O.CLUSTER_ACTION, _C)),
        "Produce": ((_O.WRITE, _T),),
        "PushTelemetry": OPEN,
        "ReadShareGroupState": ((_O.CLUSTER_ACTION, _C),),
        "ReadShareGroupStateSummary": ((_O.CLUSTER_ACTION, _C),),
        "RenewDelegationToken": OPEN,  # the HMAC and the names in the token decide
        "SaslAuthenticate": OPEN,
        "SaslHandshake": OPEN,
        "ShareAcknowledge": ((_O.READ, _G),),
        "ShareFetch": ((_O.READ, _G),),
        "ShareGroupDescribe": ((_O.DESCRIBE, _G),),
        "ShareGroupHeartbeat": ((_O.READ, _G),),
        "SyncGroup": ((_O.READ, _G),),
        "TxnOffsetCommit": ((_O.WRITE, _X),),
        "UpdateFeatures": ((_O.ALTER, _C),),
        "StreamsGroupDescribe": ((_O.DESCRIBE, _G),),
        "StreamsGroupHeartbeat": ((_O.READ, _G),),
        "WriteShareGroupState": ((_O.CLUSTER_ACTION, _C),),
        "WriteTxnMarkers": ((_O.ALTER, _C), (_O.CLUSTER_ACTION, _C)),
    }
)


def marks_of(api_name: str) -> int:
    """The marks of the rights of an API, 0 where it is open. LookupError without a row."""
    try:
        row = MATRIX[api_name]
    except KeyError:
        raise LookupError(f"{api_name} has no row in the matrix of authorization") from None
    return sum(MARKS[kind][operation] for operation, kind in row)
