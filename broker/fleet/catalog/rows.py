"""Rows that the brokers of a fleet agree by, and the orders that change them. Values only.

An incarnation is one life of a node: whatever a process does, it does as an incarnation, and a row
that fences it ends all that at once. A shard is some partitions that have one owner; its epoch
rises with each owner, and is the leader epoch of its partitions.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class Incarnation(NamedTuple):
    """One life of a node."""

    node_id: int
    number: int


class NodeAddress(NamedTuple):
    """Place at which clients reach a node."""

    host: str
    port: int


class ListenerAddress(NamedTuple):
    """Place at which clients of one listener reach a node."""

    listener: str
    host: str
    port: int


class Registration(NamedTuple):
    """A node that wants to live."""

    node_id: int
    directory_id: UUID
    """The data directory's: who holds its lock may follow its earlier process at once."""
    address: NodeAddress
    version: str
    listeners: Sequence[ListenerAddress] = ()
    joins: bool = False
    """True when it can have partitions join transactions by themselves (KIP-890)."""


class FleetFacts(NamedTuple):
    """The fleet as it was made."""

    fleet_id: UUID
    cluster_id: str
    shards: int


class NodeRow(NamedTuple):
    """A node, as the catalog knows it."""

    incarnation: Incarnation
    address: NodeAddress
    version: str
    renewals: int
    """Of its lease. Who sees the same number for a whole lease, by his own monotonic clock, may
    fence it: no wall clock has a say."""
    renewed_ms: int
    """The last one by the catalog's clock, to be shown."""
    is_fenced: bool
    is_draining: bool
    """It gets no shards: it is to have none, or it leaves."""
    listeners: Sequence[ListenerAddress] = ()
    ahead_ms: int | None = None
    """By how much its clock is ahead of the catalog's; None: it has not said."""
    joins: bool = False
    """As it registered; False for one of an earlier version."""


class ShardRow(NamedTuple):
    """A shard and its owner; None before the first one."""

    shard_id: int
    owner: Incarnation | None
    epoch: int
    load: int = 0
    """Bytes a second that its owner took for it from producers, over the last minute or so."""


class OwnedShard(NamedTuple):
    """A shard in one epoch, and so with one owner."""

    shard_id: int
    epoch: int


class LeaseRenewal(NamedTuple):
    """A lease that goes on."""

    now_ms: int
    """The catalog's clock."""
    metadata_version: int
    """Rises with each change of topics and of documents."""


class Document(NamedTuple):
    """A text that clients change as a whole, such as all settings."""

    name: str
    version: int
    """Rises by one with each change; 0 before the first one."""
    content: bytes


class PartitionKey(NamedTuple):
    """A partition of a topic that has this id, whatever its name."""

    topic_id: UUID
    number: int


class Span(NamedTuple):
    """Offsets of one partition whose bytes are one piece of a commit."""

    partition: PartitionKey
    base_offset: int
    last_offset: int
    epoch: int
    position: int
    """First of its bytes in the commit's body."""
    size_bytes: int
    max_timestamp: int

    @property
    def end_offset(self) -> int:
        """The offset behind the last one."""
        return self.last_offset + 1


class CommitId(NamedTuple):
    """One commit of an incarnation; numbers go up by one, 0 is the registration."""

    incarnation: Incarnation
    number: int


class CatalogCommit(NamedTuple):
    """Bytes that are to count. Sent again in the same words until the answer is known."""

    commit_id: CommitId
    crc: int
    """Of the whole body."""
    shards: Sequence[OwnedShard]
    spans: Sequence[Span]
    body: bytes | None
    """None: it is the object `object_key`."""
    object_key: str | None = None


class StatePiece(NamedTuple):
    """Producers and leader epochs of a partition at an offset: bytes of a checkpoint's object."""

    partition: PartitionKey
    at_offset: int
    position: int
    size_bytes: int


class Checkpoint(NamedTuple):
    """An object that takes the place of older commits.

    Each of its spans replaces those of the same offsets, each of its states the one before.
    """

    commit_id: CommitId
    crc: int
    shards: Sequence[OwnedShard]
    spans: Sequence[Span]
    states: Sequence[StatePiece]
    object_key: str
    keep_ms: int
    """For how long objects stay that nothing names any more."""


class CommitAnswer(StrEnum):
    """Result of a commit or checkpoint. All but the first two mean that nothing was changed."""

    OK = "ok"
    ALREADY = "already"
    """The same commit was there; whether every standby has it only a further write proves."""
    FENCED = "fenced"
    """The incarnation has ended."""
    CONFLICT = "conflict"
    """The number has other bytes: two processes believe to be the same incarnation."""
    GAP = "gap"
    """The commit before it is missing, so the catalog went back; or one behind it is there."""
    STALE = "stale"
    """A shard has another owner or epoch."""
    NO_PARTITION = "no partition"
    """One was deleted."""
    OFFSETS = "offsets"
    """A span does not begin where its partition ends; or a checkpoint's has other ends than those
    it replaces."""

    @property
    def counts(self) -> bool:
        """True when the bytes are committed."""
        return self in {CommitAnswer.OK, CommitAnswer.ALREADY}


class CommittedSpan(NamedTuple):
    """A span, and where its bytes are."""

    span: Span
    commit_id: CommitId
    object_key: str | None
    """None: in the commit's row."""


class CommittedState(NamedTuple):
    """A state, and where its bytes are."""

    piece: StatePiece
    object_key: str


class ManifestName(NamedTuple):
    """The manifest that counts: the one of this number among those of an epoch."""

    epoch: int
    number: int


class PartitionRow(NamedTuple):
    """A partition, and what of it is committed."""

    partition: PartitionKey
    topic: str
    shard_id: int
    log_start_offset: int
    spans: Sequence[CommittedSpan]
    """In order of offsets, without gaps. What is before the first one is in segments."""
    state: CommittedState | None
    manifest: ManifestName | None = None
    """Of its segments in the store; None: there are none."""
    copied_end: int = 0
    """The offset up to which it is in segments."""

    @property
    def first_offset(self) -> int:
        """The first one that is in a commit, or will be."""
        if self.spans:
            return self.spans[0].span.base_offset
        return self.end_offset

    @property
    def end_offset(self) -> int:
        """The offset behind all that is committed."""
        if self.spans:
            return self.spans[-1].span.end_offset
        return max(self.log_start_offset, self.copied_end)


class TopicRow(NamedTuple):
    """A topic, and the shards of its partitions by index."""

    topic_id: UUID
    name: str
    shards: Sequence[int]


class Topics(NamedTuple):
    """All topics as they were at one version."""

    version: int
    topics: Sequence[TopicRow]


class Trim(NamedTuple):
    """A partition's new log start, from its owner."""

    incarnation: Incarnation
    shard: OwnedShard
    partition: PartitionKey
    log_start_offset: int
    keep_ms: int
    """For how long objects stay that nothing names any more."""


class Naming(NamedTuple):
    """A partition's new manifest, from its owner. Its epoch is the shard's."""

    incarnation: Incarnation
    shard: OwnedShard
    partition: PartitionKey
    number: int
    end_offset: int
    """Commits of all before it may go."""
    keep_ms: int
    """For how long objects stay that nothing names any more."""


class NewTopics(NamedTuple):
    """Topics that are made all together or not at all."""

    topics: Sequence[TopicRow]
    settings: Document | None = None
    """The version of a document that they need; None: it stays as it is."""


class ImportedPartition(NamedTuple):
    """A partition of which all is in segments."""

    partition: PartitionKey
    shard_id: int
    log_start_offset: int
    end_offset: int
    epoch: int
    """The latest of its leaders; that of its manifest too."""
    manifest: int
    """Number of its manifest; 0: there is no record."""


class TopicImport(NamedTuple):
    """All that one broker had."""

    topics: Sequence[TopicRow]
    partitions: Sequence[ImportedPartition]
    """In the order of the topics, each with all its partitions in order."""
    documents: Mapping[str, bytes]
    producer_ids_below: int


class ImportAnswer(StrEnum):
    """Result of an import. All but the first two mean that nothing was changed."""

    OK = "ok"
    ALREADY = "already"
    TAKEN = "taken"
    """The fleet has other topics."""
    ALIVE = "alive"
    """A node of the fleet lives."""
    DOCUMENTS = "documents"
    """The fleet has other settings, users, rights or quotas."""


class TopicAnswer(StrEnum):
    """Result of making topics."""

    OK = "ok"
    ALREADY = "already"
    """They are these very ones."""
    TAKEN = "taken"
    """Another topic has one of the names."""
    CHANGED = "changed"
    """Another version of the document was made meanwhile."""
