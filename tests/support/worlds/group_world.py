"""Groups without network, threads or disk: members speak through the handlers, time stands still.

A `Member` is one client. What it says goes through the bytes of a version, both ways; a join or a
sync that has to wait is a promise that `answer_of` looks into.
"""

from typing import Any

from broker.groups.classic.group import Group
from broker.runtime.deferred import Deferred
from protocol.apis import (
    heartbeat,
    join_group,
    leave_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.support.disk.simdisk import SimFileSystem
from tests.support.worlds.handler_world import World

MINUTE_MS = 60_000
DAY_MS = 86_400_000
GROUP = "g"
INITIAL_DELAY_MS = 3000
PROTOCOLS = (("range", b"r"), ("roundrobin", b"rr"))


class Promise:
    """An answer that may come later; None until then."""

    def __init__(self, world: World, request: Any, version: int) -> None:
        self.answer: Any = None
        self.error: BaseException | None = None
        self._world, self._request, self._version = world, request, version
        begun = world.begin(request, version)
        if isinstance(begun, Deferred):
            begun.listen(self._came)
        else:
            self._came(begun, None)

    def _came(self, value: Any, error: BaseException | None) -> None:
        self.error = error
        if error is None:
            self.answer = self._world.read(self._request, self._version, value)


class GroupWorld(World):
    """A broker whose groups are tried."""

    def restarted(self, fs: SimFileSystem | None = None) -> "GroupWorld":
        """Another life draws other member ids, as a real broker does."""
        return GroupWorld(fs or self.fs.after_kill(), self.seed + 1, horolog_durability="os")

    def now(self, request: Any, version: int) -> Any:
        """The answer to a request that must not wait."""
        promise = Promise(self, request, version)
        assert promise.error is None, promise.error
        assert promise.answer is not None, "it waits"
        return promise.answer

    def pass_ms(self, ms: int) -> None:
        """Time passes, and what is due by then happens."""
        self.clock.advance(ms)
        self.broker.groups.deadlines.expire()

    def group(self, group_id: str = GROUP) -> Group:
        found: Group = self.broker.groups.groups[group_id]
        return found

    def member(self, **settings: Any) -> "Member":
        return Member(self, **settings)

    def stable(self, *members: "Member") -> None:
        """These have joined a new group and got their parts: "part of" and the member's number."""
        joins = [member.join() for member in members]
        self.pass_ms(INITIAL_DELAY_MS)
        self.pass_ms(INITIAL_DELAY_MS)
        for member, join in zip(members, joins, strict=True):
            member.took(join)
        self.assign(*members)

    def assign(self, *members: "Member") -> None:
        """The leader hands in the parts, everybody gets its own."""
        parts = {each.member_id: b"part of %d" % n for n, each in enumerate(members)}
        leader_id = self.group(members[0].group_id).leader
        leader = next(each for each in members if each.member_id == leader_id)
        first = leader.sync(parts)
        answers = [first if each is leader else each.sync() for each in members]
        assert [each.answer.error_code for each in answers] == [0] * len(members)
        assert [each.answer.assignment for each in answers] == [*parts.values()]

    def commit_offsets(self, *offsets: tuple[str, int, int], **who: Any) -> list[int]:
        """Commits (topic, partition, offset); the codes, in order."""
        version = who.pop("version", 9)
        answer = self.now(commit_request(*offsets, **who), version)
        return [part.error_code for topic in answer.topics for part in topic.partitions]

    def offsets(self, group_id: str = GROUP, version: int = 9) -> dict[tuple[str, int], int]:
        """All that the group has committed."""
        wanted = offset_fetch.OffsetFetchRequestGroup(group_id=group_id, topics=None)
        answer = self.now(offset_fetch.OffsetFetchRequest(groups=[wanted]), version).groups[0]
        assert answer.error_code == 0
        return {
            (topic.name, part.partition_index): part.committed_offset
            for topic in answer.topics
            for part in topic.partitions
        }


def commit_request(
    *offsets: tuple[str, int, int], group_id: str = GROUP, metadata: str = "", **who: Any
) -> offset_commit.OffsetCommitRequest:
    """One topic for each offset, so that the order stays."""
    topics = [
        offset_commit.OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                offset_commit.OffsetCommitRequestPartition(
                    partition_index=index, committed_offset=offset, committed_metadata=metadata
                )
            ],
        )
        for topic, index, offset in offsets
    ]
    return offset_commit.OffsetCommitRequest(group_id=group_id, topics=topics, **who)


class Member:
    """One client that wants to be in a group."""

    def __init__(
        self,
        world: GroupWorld,
        *,
        group_id: str = GROUP,
        instance: str | None = None,
        protocols: tuple[tuple[str, bytes], ...] = PROTOCOLS,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int = 9,
    ) -> None:
        self.world, self.group_id, self.instance = world, group_id, instance
        self.protocols, self.protocol_type = protocols, protocol_type
        self.session_ms, self.rebalance_ms = session_ms, rebalance_ms
        self.version = version
        self.member_id = ""
        self.generation = -1

    def join(self) -> Promise:
        """Joins; with the id that it is given first, if it is given one."""
        promise = self.ask_to_join()
        if promise.answer is not None and promise.answer.error_code == 79:
            self.member_id = promise.answer.member_id
            promise = self.ask_to_join()
        return promise

    def ask_to_join(self) -> Promise:
        """One JoinGroup."""
        request = join_group.JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocols=[
                join_group.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self.protocols
            ],
        )
        return Promise(self.world, request, self.version)

    def took(self, promise: Promise) -> Any:
        """The member is in the generation that the answer speaks of."""
        answer = promise.answer
        assert answer is not None, "the join waits"
        assert answer.error_code == 0, answer
        self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, parts: dict[str, bytes] | None = None) -> Promise:
        request = sync_group.SyncGroupRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type=self.protocol_type,
            protocol_name=self.world.group(self.group_id).protocol_name or "range",
            assignments=[
                sync_group.SyncGroupRequestAssignment(member_id=name, assignment=part)
                for name, part in (parts or {}).items()
            ],
        )
        return Promise(self.world, request, 5)

    def heartbeat(self) -> int:
        request = heartbeat.HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        code: int = self.world.now(request, 4).error_code
        return code

    def leave(self) -> list[int]:
        return leave(self.world, (self.member_id, self.instance), group_id=self.group_id)

    def commit(self, *offsets: tuple[str, int, int], **changed: Any) -> list[int]:
        who = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "generation_id_or_member_epoch": self.generation,
            **changed,
        }
        return self.world.commit_offsets(*offsets, **who)


def leave(world: GroupWorld, *who: tuple[str, str | None], group_id: str = GROUP) -> list[int]:
    """Members by id and instance id; their codes."""
    members = [
        leave_group.MemberIdentity(member_id=name, group_instance_id=instance)
        for name, instance in who
    ]
    answer = world.now(leave_group.LeaveGroupRequest(group_id=group_id, members=members), 5)
    assert answer.error_code == 0
    return [each.error_code for each in answer.members]


async def group_world(**settings: str) -> GroupWorld:
    """A broker with topic "t" of two partitions; what is written counts as durable at once."""
    settings = {"horolog_durability": "os", "offsets_topic_num_partitions": "2", **settings}
    world = GroupWorld(None, 0, **settings)
    await world.make_topic("t", 2)
    await world.broker.groups.topic.make()
    return world
