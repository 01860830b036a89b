"""Contents of a heartbeat of a streams group, and the checks that this broker can take it.

Rules: Kafka 4.3's `GroupCoordinatorService` and `GroupMetadataManager`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from broker.groups.streams.configuring import InternalTopic, invalid_topology
from broker.groups.streams.endpoints import EndpointPartitions
from broker.groups.streams.member import Endpoint, StreamsMember
from broker.groups.streams.status import Status
from broker.groups.streams.tasks import HeldTasks, Tasks, TaskSet
from broker.groups.streams.topology import Topology
from broker.groups.subscriptions import MAX_ID_CHARACTERS, words_bytes
from protocol.apis.streams_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    StreamsGroupHeartbeatRequest,
    StreamsTaskIds,
    StreamsTopology,
)
from protocol.errors import ErrorCode, KafkaError

MAX_TAGS = 100
WORD_BYTES = 12  # of a text in a record beside its characters, at most


class StreamsHeartbeat(NamedTuple):
    """One heartbeat; what is None did not change."""

    group_id: str
    member_id: str
    epoch: int
    endpoint_epoch: int
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: Topology | None
    owned: TaskSet | None
    process_id: str | None
    endpoint: Endpoint | None
    tags: Mapping[str, str] | None
    shuts_down: bool
    client_id: str
    client_host: str

    @property
    def joins(self) -> bool:
        """True when the member begins, or begins again."""
        return self.epoch == JOIN_EPOCH

    @property
    def leaves(self) -> bool:
        """True when the member leaves."""
        return self.epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH}

    @property
    def size_bytes(self) -> int:
        """About what its words take."""
        words = [self.rack_id or "", self.process_id or "", *(self.tags or {})]
        words += (self.tags or {}).values()
        return words_bytes(words, "", self.client_id)

    @property
    def has_words(self) -> bool:
        """True when it says something of the member that is kept."""
        said = (self.topology, self.rack_id, self.process_id, self.endpoint, self.tags)
        return any(each is not None for each in said)

    @property
    def stored_bytes(self) -> int:
        """Bytes of its words in a record, and of its topology in another: of the longer one."""
        tags = self.tags or {}
        words = [self.rack_id or "", self.process_id or "", *tags, *tags.values()]
        return max(_stored(words), 0 if self.topology is None else _stored(self.topology.words))


class GroupStatus(NamedTuple):
    """A status, and the text that explains it."""

    status: Status
    text: str


class StreamsHeard(NamedTuple):
    """Answer to a member; `tasks` and `endpoints` are None where they did not change."""

    member_id: str
    epoch: int
    tasks: HeldTasks | None = None
    statuses: Sequence[GroupStatus] = ()
    endpoint_epoch: int = 0
    endpoints: Sequence[EndpointPartitions] | None = None
    missing: Mapping[str, InternalTopic] = {}
    """Internal topics that are to be made."""

    @property
    def is_over(self) -> bool:
        """True when the member left."""
        return self.epoch in {LEAVE_EPOCH, LEAVE_STATIC_EPOCH}


def check_features(request: StreamsGroupHeartbeatRequest) -> None:
    """INVALID_REQUEST (42) for what Kafka 4.3 does not do yet."""
    _refuse(request.instance_id is not None, "Static membership is not yet supported.")
    _refuse(request.task_offsets is not None, "TaskOffsets are not supported yet.")
    _refuse(request.task_end_offsets is not None, "TaskEndOffsets are not supported yet.")
    _refuse(bool(request.warmup_tasks), "WarmupTasks are not supported yet.")
    parts = () if request.topology is None else request.topology.subtopologies
    _refuse(
        any(each.source_topic_regex for each in parts),
        "Regular expressions for source topics are not supported yet.",
    )


def check(request: StreamsGroupHeartbeatRequest) -> None:
    """INVALID_REQUEST (42), or STREAMS_INVALID_TOPOLOGY (130): Kafka's checks in Kafka's order."""
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        _refuse(text is not None and not text.strip(), f"{name} can't be empty.")
        is_long = name != "GroupId" and len(text or "") > MAX_ID_CHARACTERS
        _refuse(is_long, f"{name} has more than {MAX_ID_CHARACTERS} characters.")
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if request.member_epoch == JOIN_EPOCH:
        _check_join(request)
    elif request.member_epoch == LEAVE_STATIC_EPOCH:
        _refuse(True, "InstanceId can't be null.")
    elif request.member_epoch < LEAVE_STATIC_EPOCH:
        text = f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2."
        _refuse(True, text)
    is_partial = any(each is not None for each in owned) and None in owned
    _refuse(is_partial, "If one task-type is non-null, all must be non-null.")
    if request.member_epoch != JOIN_EPOCH:
        is_late = request.topology is not None
        _refuse(is_late, "Topology can only be provided when (re-)joining.")
    _check_words(request)


def _check_join(request: StreamsGroupHeartbeatRequest) -> None:
    _refuse(
        request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."
    )
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        _refuse(tasks is None or bool(tasks), f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    for part in request.topology.subtopologies:
        for log in part.state_changelog_topics:
            if log.partitions:
                raise invalid_topology(
                    f"Changelog topic {log.name} must have an undefined partition count, but it "
                    f"is set to {log.partitions}."
                )


def _check_words(request: StreamsGroupHeartbeatRequest) -> None:
    """Our limits: what is kept of a member is small."""
    _refuse(
        len(request.process_id or "") > MAX_ID_CHARACTERS,
        f"ProcessId has more than {MAX_ID_CHARACTERS} characters.",
    )
    host = "" if request.user_endpoint is None else request.user_endpoint.host
    _refuse(len(host) > MAX_ID_CHARACTERS, f"A host has more than {MAX_ID_CHARACTERS} characters.")
    tags = request.client_tags or []
    _refuse(len(tags) > MAX_TAGS, f"There are more than {MAX_TAGS} client tags.")
    _refuse(
        any(len(text) > MAX_ID_CHARACTERS for each in tags for text in (each.key, each.value)),
        f"A client tag has more than {MAX_ID_CHARACTERS} characters.",
    )


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> TaskSet | None:
    """The tasks that a member says it runs; None when it does not say."""
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    return TaskSet(_tasks(active), _tasks(standby), _tasks(warmup))


def _tasks(said: Collection[StreamsTaskIds]) -> Tasks:
    found: dict[str, frozenset[int]] = {}
    for each in said:
        before = found.get(each.subtopology_id, frozenset())
        found[each.subtopology_id] = before | frozenset(each.partitions)
    return found


def topic_names(topology: StreamsTopology) -> list[str]:
    """The names of all topics of a topology, each once."""
    names: dict[str, None] = {}
    for part in topology.subtopologies:
        names.update(dict.fromkeys(part.source_topics))
        names.update(dict.fromkeys(part.repartition_sink_topics))
        names.update(dict.fromkeys(each.name for each in part.repartition_source_topics))
        names.update(dict.fromkeys(each.name for each in part.state_changelog_topics))
    return list(names)


def check_epoch(member: StreamsMember, beat: StreamsHeartbeat) -> None:
    """FENCED_MEMBER_EPOCH (110), but for an epoch whose answer may have been lost."""
    if beat.joins or beat.epoch == member.epoch:
        return
    side = "greater" if beat.epoch > member.epoch else "smaller"
    is_last = side == "smaller" and beat.epoch == member.previous_epoch
    if is_last and beat.owned is not None and beat.owned.is_within(member.held):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The streams group member has a {side} member epoch ({beat.epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _stored(words: Iterable[str]) -> int:
    return sum(len(each.encode()) + WORD_BYTES for each in words)


def _refuse(is_refused: bool, text: str) -> None:
    if is_refused:
        raise _invalid(text)


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
