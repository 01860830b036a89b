"""OffsetCommit: stores how far a group has come; answered when that is durable.

Each offset is judged by itself (does its partition exist, is its text short enough); those that
pass are stored as one batch. A request with very many gives others their turn meanwhile.
"""

import asyncio
from collections.abc import Generator, Iterator
from typing import NamedTuple

from broker.groups.classic.group import Group, Place
from broker.groups.classic.members import MemberClaim
from broker.groups.commits import offset_row
from broker.groups.coordinator import GroupCoordinator
from broker.groups.records.classic import NONE, OffsetCommitValue
from broker.groups.requests import CommitAsked, topic_of
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.audit.lines import Who
from broker.security.audit.trail import AuditTrail
from broker.server.admin_actions import change, who_asks
from broker.state.state_topic import Row
from broker.topics.metadata_image import TopicImage
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock

NO_GROUP_SINCE_VERSION = 9
SET_OFFSET, OFFSET_COMMIT = "set offset", "OffsetCommit"
FEW = 250
"""Topics and partitions of a request that is judged and answered in one turn."""


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes
    clock: Clock
    trail: AuditTrail
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: OffsetCommitRequest, context: Context
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    """One code for each offset."""
    commit = _Commit(request, context)
    if sum(1 + len(topic.partitions) for topic in request.topics) > FEW:
        return context.services.answers.make(commit.pieces, _response, beside=True, in_order=True)
    for _ in commit.judge():
        pass
    stored = commit.store()
    if isinstance(stored, Deferred):
        return after(stored, lambda _: commit.respond(ErrorCode.NONE), commit.respond_to)
    return commit.respond(stored)


class _Commit:
    """A request under way; steps of its generators are short."""

    def __init__(self, request: OffsetCommitRequest, context: Context) -> None:
        self._request = request
        self._context = context
        self._most_metadata_bytes = context.services.config.broker_config.offset_metadata_max_bytes
        self._refused = ErrorCode.NONE  # of the group, before any offset is looked at
        self._judged: list[tuple[OffsetCommitRequestTopic, list[int]]] = []
        """Topics as asked for, with the codes of their partitions so far."""
        self._offsets: dict[Place, OffsetCommitValue] = {}
        self._rows: dict[Place, Row] = {}

    def pieces(self, room: AnswerRoom) -> Iterator[OffsetCommitResponseTopic | None]:
        """All of it: the topics of the answer, with rests between and one wait for the disk."""
        yield from self.judge()
        stored = self.store()
        code = (yield from _waited(stored, room)) if isinstance(stored, Deferred) else stored
        yield from self._topics(code)

    def respond(self, code: int) -> OffsetCommitResponse:
        """`code` is that of all offsets that were not refused by themselves."""
        return _response([each for each in self._topics(code) if each is not None])

    def respond_to(self, error: KafkaError) -> OffsetCommitResponse:
        """None of them could be stored."""
        return self.respond(_code_of(error))

    # --- judging ---

    def judge(self) -> Iterator[None]:
        """Gives each offset its code, and takes those that may be stored."""
        context, request = self._context, self._request
        may = context.may(AclOperation.READ, ResourceType.GROUP, request.group_id)
        self._refused = ErrorCode.NONE if may else ErrorCode.GROUP_AUTHORIZATION_FAILED
        for topic in request.topics:
            codes: list[int] = []
            self._judged.append((topic, codes))
            image, code = self._readable(topic) if may else (None, ErrorCode.NONE)
            for each in topic.partitions:
                codes.append(code if image is None else self._take(each, image))
                yield
            yield

    def _readable(self, topic: OffsetCommitRequestTopic) -> tuple[TopicImage | None, ErrorCode]:
        """The topic, if the client may read it, or why not; a name that it may not is not looked
        for.
        """
        context, image = self._context, self._context.services.topics.image
        try:
            if topic.name:
                context.require(AclOperation.READ, ResourceType.TOPIC, topic.name)
                return topic_of(image, topic.name, topic.topic_id), ErrorCode.NONE
            found = topic_of(image, topic.name, topic.topic_id)
            context.require(AclOperation.READ, ResourceType.TOPIC, found.name)
        except KafkaError as error:
            return None, error.code
        return found, ErrorCode.NONE

    def _take(self, each: OffsetCommitRequestPartition, image: TopicImage) -> int:
        if image.partition(each.partition_index) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if len((each.committed_metadata or "").encode()) > self._most_metadata_bytes:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        place = image.name, each.partition_index
        value = self._offsets[place] = self._value(each, image)
        self._rows[place] = offset_row(self._request.group_id, place, value)
        return ErrorCode.NONE

    def _value(self, each: OffsetCommitRequestPartition, image: TopicImage) -> OffsetCommitValue:
        now_ms = self._context.services.clock.now_ms()
        retention_ms = self._request.retention_time_ms
        expires_ms = NONE if retention_ms < 0 else min(now_ms + retention_ms, (1 << 63) - 1)
        return OffsetCommitValue(
            offset=each.committed_offset,
            leader_epoch=each.committed_leader_epoch,
            metadata=each.committed_metadata or "",
            commit_timestamp=now_ms,
            expire_timestamp=expires_ms,
            topic_id=image.topic_id,
        )

    # --- storing ---

    def store(self) -> Deferred[None] | int:
        """Stores what was taken: settled when that is durable; or the code, where nothing is."""
        if self._refused:
            return self._refused
        groups = self._context.services.groups
        try:
            group = self._group()
            size_bytes = self._growth_bytes(group)
        except KafkaError as error:
            return error.code
        if not self._offsets:
            groups.drop_unused(group)
            return ErrorCode.NONE
        return groups.commits.store(group, self._offsets, size_bytes, list(self._rows.values()))

    def _group(self) -> Group:
        request, version = self._request, self._context.api_version
        groups, generation = self._context.services.groups, request.generation_id_or_member_epoch
        if generation < 0:
            group = groups.find_or_make(request.group_id)
        else:
            known = version >= NO_GROUP_SINCE_VERSION
            missing = ErrorCode.GROUP_ID_NOT_FOUND if known else ErrorCode.ILLEGAL_GENERATION
            group = groups.require(request.group_id, missing)
        claim = MemberClaim(request.member_id, request.group_instance_id, generation)
        places = [(value.topic_id, place[1]) for place, value in self._offsets.items()]
        groups.commits.check(group, claim, CommitAsked(version, places, self._offsets))
        return group

    def _growth_bytes(self, group: Group) -> int:
        """Growth of the stored bytes; INVALID_COMMIT_OFFSET_SIZE (28) if there is no room."""
        groups = self._context.services.groups
        growth = groups.commits.growth(group, self._offsets)
        try:
            groups.room.check_offsets(group, growth)
        except KafkaError:
            groups.drop_unused(group)
            raise
        return growth[1]

    # --- answering ---

    def _topics(self, code: int) -> Iterator[OffsetCommitResponseTopic | None]:
        """The topics of the answer; None where it may rest."""
        request, context = self._request, self._context
        is_member = request.member_id or request.generation_id_or_member_epoch >= 0
        who = None if is_member else who_asks(context)
        context.count_error(code)
        for topic, codes in self._judged:
            answers: list[OffsetCommitResponsePartition] = []
            for asked, own in zip(topic.partitions, codes, strict=True):
                index = asked.partition_index
                answer = OffsetCommitResponsePartition(
                    partition_index=index, error_code=own or code
                )
                answers.append(answer)
                if own:
                    context.count_error(own)
                if who is not None:
                    self._note(who, topic, asked, answer)
                yield None
            yield OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=answers
            )

    def _note(
        self,
        who: Who,
        topic: OffsetCommitRequestTopic,
        asked: OffsetCommitRequestPartition,
        answer: OffsetCommitResponsePartition,
    ) -> None:
        """Traces commits by clients that are no members: administrators, and consumers that
        assign themselves.
        """
        place = f"{self._request.group_id} {topic.name or topic.topic_id}-{asked.partition_index}"
        noted = change(SET_OFFSET, place, f"offset={asked.committed_offset}", answer)
        self._context.services.trail.added(who, noted, OFFSET_COMMIT)


def _waited(stored: Deferred[None], room: AnswerRoom) -> Generator[None, None, int]:
    """Rests until the disk has it; the code."""

    async def code() -> int:
        try:
            await wait_for(stored)
        except KafkaError as error:
            return _code_of(error)
        return ErrorCode.NONE

    room.waits_for = task = asyncio.get_running_loop().create_task(code())
    yield None
    return task.result()


def _response(topics: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=topics)


def _code_of(error: KafkaError) -> int:
    """As Kafka tells a commit that cannot be written."""
    too_large = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD}
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if error.code in too_large else error.code
