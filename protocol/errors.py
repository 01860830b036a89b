"""Errors of decoding, and the wire's table of error codes.

Three families that never turn into one another silently: `DecodeError` is damage in what a peer
or a disk gave us, `KafkaError` is an expected outcome that has a code on the wire, and everything
else is a bug. The table is Kafka 4.3's (`Errors.java`): code, whether a client may retry, and text.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Self


class DecodeError(ValueError):
    """Bytes that are damaged, truncated, over a limit or not of the version they claim.

    `position` is the byte at which reading stopped, or -1 when it is not known.
    """

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message if position < 0 else f"{message} (at byte {position})")
        self.message = message
        self.position = position


class ErrorCode(enum.IntEnum):
    """Kafka's error codes: an int on the wire, with `retriable` and `description` beside it."""

    retriable: bool
    description: str

    if not TYPE_CHECKING:  # a type checker reads a row's first number as the value, as it is

        def __new__(cls, code: int, retriable: bool, description: str) -> Self:
            """Make one row of the table."""
            row = int.__new__(cls, code)
            row._value_ = code
            row.retriable = retriable
            row.description = description
            return row

    UNKNOWN_SERVER_ERROR = -1, False, "An unexpected error occurred in the server"
    NONE = 0, False, "No error"
    OFFSET_OUT_OF_RANGE = 1, False, "The offset is outside the range the log holds"
    CORRUPT_MESSAGE = 2, True, "The records fail their checksum, size or format"
    UNKNOWN_TOPIC_OR_PARTITION = 3, True, "This server does not host this partition"
    INVALID_FETCH_SIZE = 4, False, "The requested fetch size is invalid"
    LEADER_NOT_AVAILABLE = 5, True, "The partition has no leader at present"
    NOT_LEADER_OR_FOLLOWER = 6, True, "This broker does not lead or follow the partition"
    REQUEST_TIMED_OUT = 7, True, "The request timed out"
    BROKER_NOT_AVAILABLE = 8, False, "The broker is not available"
    REPLICA_NOT_AVAILABLE = 9, True, "The replica is not available"
    MESSAGE_TOO_LARGE = 10, False, "A message is larger than the server accepts"
    STALE_CONTROLLER_EPOCH = 11, False, "The controller moved to another broker"
    OFFSET_METADATA_TOO_LARGE = 12, False, "The metadata of the offset is too large"
    NETWORK_EXCEPTION = 13, True, "The server disconnected before it answered"
    COORDINATOR_LOAD_IN_PROGRESS = 14, True, "The coordinator is still loading"
    COORDINATOR_NOT_AVAILABLE = 15, True, "The coordinator is not available"
    NOT_COORDINATOR = 16, True, "This is not the right coordinator"
    INVALID_TOPIC_EXCEPTION = 17, False, "The topic does not permit this operation"
    RECORD_LIST_TOO_LARGE = 18, False, "The batch is larger than a segment may be"
    NOT_ENOUGH_REPLICAS = 19, True, "Too few replicas are in sync to accept the records"
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, True, "Written, but to too few in-sync replicas"
    INVALID_REQUIRED_ACKS = 21, False, "acks must be -1, 0 or 1"
    ILLEGAL_GENERATION = 22, False, "The generation of the group is not valid"
    INCONSISTENT_GROUP_PROTOCOL = 23, False, "The protocols of the member do not fit the group"
    INVALID_GROUP_ID = 24, False, "The group id is invalid"
    UNKNOWN_MEMBER_ID = 25, False, "The coordinator does not know this member"
    INVALID_SESSION_TIMEOUT = 26, False, "The session timeout is outside the permitted range"
    REBALANCE_IN_PROGRESS = 27, False, "The group is rebalancing; rejoin"
    INVALID_COMMIT_OFFSET_SIZE = 28, False, "The size of the committed offset data is not valid"
    TOPIC_AUTHORIZATION_FAILED = 29, False, "Topic authorization failed"
    GROUP_AUTHORIZATION_FAILED = 30, False, "Group authorization failed"
    CLUSTER_AUTHORIZATION_FAILED = 31, False, "Cluster authorization failed"
    INVALID_TIMESTAMP = 32, False, "The timestamp is out of the accepted range"
    UNSUPPORTED_SASL_MECHANISM = 33, False, "The SASL mechanism is not supported"
    ILLEGAL_SASL_STATE = 34, False, "The request is not valid in this SASL state"
    UNSUPPORTED_VERSION = 35, False, "The version of the API is not supported"
    TOPIC_ALREADY_EXISTS = 36, False, "A topic of this name exists already"
    INVALID_PARTITIONS = 37, False, "The number of partitions is not valid"
    INVALID_REPLICATION_FACTOR = 38, False, "The replication factor is not possible"
    INVALID_REPLICA_ASSIGNMENT = 39, False, "The replica assignment is not valid"
    INVALID_CONFIG = 40, False, "The configuration is not valid"
    NOT_CONTROLLER = 41, True, "This is not the controller of the cluster"
    INVALID_REQUEST = 42, False, "The request is malformed or contradicts itself"
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, False, "The message format does not support the request"
    POLICY_VIOLATION = 44, False, "The request violates a policy of the server"
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, False, "The sequence number is out of order"
    DUPLICATE_SEQUENCE_NUMBER = 46, False, "The sequence number was used before"
    INVALID_PRODUCER_EPOCH = 47, False, "The epoch of the producer is old"
    INVALID_TXN_STATE = 48, False, "The transaction is in another state"
    INVALID_PRODUCER_ID_MAPPING = 49, False, "The producer id is not that of the transactional id"
    INVALID_TRANSACTION_TIMEOUT = 50, False, "The transaction timeout is larger than permitted"
    CONCURRENT_TRANSACTIONS = 51, True, "Another operation on the transaction is under way"
    TRANSACTION_COORDINATOR_FENCED = 52, False, "The transaction coordinator was replaced"
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, False, "Transactional Id authorization failed"
    SECURITY_DISABLED = 54, False, "Security features are disabled"
    OPERATION_NOT_ATTEMPTED = 55, False, "Not attempted, since another part of the request failed"
    KAFKA_STORAGE_ERROR = 56, True, "The disk failed under the log"
    LOG_DIR_NOT_FOUND = 57, False, "The server has no such log directory"
    SASL_AUTHENTICATION_FAILED = 58, False, "SASL Authentication failed"
    UNKNOWN_PRODUCER_ID = 59, False, "The log has no records of this producer"
    REASSIGNMENT_IN_PROGRESS = 60, False, "A partition reassignment is in progress"
    DELEGATION_TOKEN_AUTH_DISABLED = 61, False, "Delegation Token feature is not enabled"
    DELEGATION_TOKEN_NOT_FOUND = 62, False, "Delegation Token is not found on server"
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, False, "The principal neither owns nor renews the token"
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "No delegation tokens on this channel",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, False, "Delegation Token authorization failed"
    DELEGATION_TOKEN_EXPIRED = 66, False, "Delegation Token is expired"
    INVALID_PRINCIPAL_TYPE = 67, False, "Supplied principalType is not supported"
    NON_EMPTY_GROUP = 68, False, "The group is not empty"
    GROUP_ID_NOT_FOUND = 69, False, "The group does not exist"
    FETCH_SESSION_ID_NOT_FOUND = 70, True, "The fetch session ID was not found"
    INVALID_FETCH_SESSION_EPOCH = 71, True, "The fetch session epoch is invalid"
    LISTENER_NOT_FOUND = 72, True, "The leader has no listener of this name"
    TOPIC_DELETION_DISABLED = 73, False, "Topic deletion is disabled"
    FENCED_LEADER_EPOCH = 74, True, "The leader epoch is older than that of the broker"
    UNKNOWN_LEADER_EPOCH = 75, True, "The leader epoch is newer than that of the broker"
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        False,
        "The client lacks the codec of the partition",
    )
    STALE_BROKER_EPOCH = 77, False, "Broker epoch has changed"
    OFFSET_NOT_AVAILABLE = 78, True, "The high watermark has not caught up after an election"
    MEMBER_ID_REQUIRED = 79, False, "The member needs an id before it joins"
    PREFERRED_LEADER_NOT_AVAILABLE = 80, True, "The preferred leader was not available"
    GROUP_MAX_SIZE_REACHED = 81, False, "The group has reached its maximum size"
    FENCED_INSTANCE_ID = 82, False, "Another member has registered with this instance id"
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, True, "Eligible topic partition leaders are not available"
    ELECTION_NOT_NEEDED = 84, True, "Leader election not needed for topic partition"
    NO_REASSIGNMENT_IN_PROGRESS = 85, False, "No partition reassignment is in progress"
    GROUP_SUBSCRIBED_TO_TOPIC = 86, False, "The group is subscribed to the topic"
    INVALID_RECORD = 87, False, "A record failed validation"
    UNSTABLE_OFFSET_COMMIT = 88, True, "Offsets of open transactions are pending"
    THROTTLING_QUOTA_EXCEEDED = 89, True, "The throttling quota has been exceeded"
    PRODUCER_FENCED = 90, False, "A newer producer uses this transactional id"
    RESOURCE_NOT_FOUND = 91, False, "The resource does not exist"
    DUPLICATE_RESOURCE = 92, False, "The request names a resource twice"
    UNACCEPTABLE_CREDENTIAL = 93, False, "The credential does not meet the criteria"
    INCONSISTENT_VOTER_SET = 94, False, "Sender or recipient is not an expected voter"
    INVALID_UPDATE_VERSION = 95, False, "The given update version was invalid"
    FEATURE_UPDATE_FAILED = 96, False, "The finalized features could not be updated"
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        False,
        "The forwarded principal cannot be read",
    )
    SNAPSHOT_NOT_FOUND = 98, False, "Requested snapshot was not found"
    POSITION_OUT_OF_RANGE = 99, False, "The position is outside the snapshot"
    UNKNOWN_TOPIC_ID = 100, True, "This server does not host this topic id"
    DUPLICATE_BROKER_REGISTRATION = 101, False, "This broker ID is already in use"
    BROKER_ID_NOT_REGISTERED = 102, False, "The given broker ID was not registered"
    INCONSISTENT_TOPIC_ID = 103, True, "The topic id is not that of the log"
    INCONSISTENT_CLUSTER_ID = 104, False, "The cluster id is not that of the server"
    TRANSACTIONAL_ID_NOT_FOUND = 105, False, "The transactionalId could not be found"
    FETCH_SESSION_TOPIC_ID_ERROR = 106, True, "The fetch session mixes topic ids and names"
    INELIGIBLE_REPLICA = 107, False, "The new ISR holds an ineligible replica"
    NEW_LEADER_ELECTED = 108, False, "The partition was altered, and has another leader now"
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, False, "The offset has moved to tiered storage"
    FENCED_MEMBER_EPOCH = 110, False, "The coordinator fenced the epoch of the member; rejoin"
    UNRELEASED_INSTANCE_ID = 111, False, "Another member still uses the instance id"
    UNSUPPORTED_ASSIGNOR = 112, False, "The group does not support the assignor"
    STALE_MEMBER_EPOCH = 113, False, "The epoch of the member is stale"
    MISMATCHED_ENDPOINT_TYPE = 114, False, "The request was sent to an endpoint of the wrong type"
    UNSUPPORTED_ENDPOINT_TYPE = 115, False, "This endpoint type is not supported yet"
    UNKNOWN_CONTROLLER_ID = 116, False, "This controller ID is not known"
    UNKNOWN_SUBSCRIPTION_ID = 117, False, "The telemetry subscription is invalid or outdated"
    TELEMETRY_TOO_LARGE = 118, False, "The telemetry is larger than the broker accepts"
    INVALID_REGISTRATION = 119, False, "The registration of the broker is not valid"
    TRANSACTION_ABORTABLE = 120, False, "The transaction failed; abort it to go on"
    INVALID_RECORD_STATE = 121, False, "The state of the record forbids the acknowledgement"
    SHARE_SESSION_NOT_FOUND = 122, True, "The share session was not found"
    INVALID_SHARE_SESSION_EPOCH = 123, True, "The share session epoch is invalid"
    FENCED_STATE_EPOCH = 124, False, "The epoch of the share group state does not match"
    INVALID_VOTER_KEY = 125, False, "The key of the voter does not match the replica"
    DUPLICATE_VOTER = 126, False, "The voter is in the set already"
    VOTER_NOT_FOUND = 127, False, "The voter is not in the set"
    INVALID_REGULAR_EXPRESSION = 128, False, "The regular expression is not valid"
    REBOOTSTRAP_REQUIRED = 129, False, "The metadata of the client is stale; bootstrap again"
    STREAMS_INVALID_TOPOLOGY = 130, False, "The supplied topology is invalid"
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, False, "The epoch of the topology is not valid"
    STREAMS_TOPOLOGY_FENCED = 132, False, "The epoch of the topology is outdated"
    SHARE_SESSION_LIMIT_REACHED = 133, True, "The limit of share sessions has been reached"


MOST_MESSAGE_CHARACTERS = 8000
"""Of the text of an error: in UTF-8 always short enough for a length of 16 bits."""


class KafkaError(Exception):
    """An expected outcome that the client receives as a code, with a text for people."""

    def __init__(self, code: ErrorCode, message: str = "") -> None:
        self.code = code
        if len(message) > MOST_MESSAGE_CHARACTERS:  # it has words of the client in it
            message = f"{message[: MOST_MESSAGE_CHARACTERS - 3]}..."
        self.message = message or code.description
        super().__init__(f"{code.name}: {self.message}")
