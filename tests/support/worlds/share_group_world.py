"""Share groups without network, threads or disk, and with states of partitions in memory.

What groups remember is read back from the log, batch by batch.
"""

from typing import Any
from uuid import UUID

from broker.groups.classic.group import Group
from broker.groups.classic.members import Footprint
from broker.groups.records.share import ShareKind, ShareRow, read_share_row
from broker.groups.row_writer import RowWriter
from broker.groups.share.group import ShareGroup
from broker.groups.share.groups import ShareGroups
from broker.groups.share.heartbeat import ShareHeard, ShareHeartbeat
from broker.groups.share.persister import StateSummary
from broker.groups.surroundings import Surroundings
from broker.runtime.deferred import Deferred
from broker.state.reading import batches_of
from protocol.errors import ErrorCode, KafkaError
from protocol.records.record import iter_records
from tests.support.worlds.group_world import GROUP, GroupWorld, group_world


class MemoryPersister:
    """States of partitions, in memory; while `waits`, nothing is settled."""

    def __init__(self) -> None:
        self.states: dict[tuple[str, UUID, int], tuple[int, StateSummary]] = {}
        self.fails: set[int] = set()
        """Partitions that cannot be written."""
        self.waits = False
        self.waiting: list[Deferred[None]] = []

    def initialize(
        self, group_id: str, topic_id: UUID, partition: int, state_epoch: int, start_offset: int
    ) -> Deferred[None]:
        done = self._done(partition)
        if partition not in self.fails:
            summary = StateSummary(start_offset)
            self.states[group_id, topic_id, partition] = state_epoch, summary
        return done

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> Deferred[None]:
        done = self._done(partition)
        if partition not in self.fails:
            self.states.pop((group_id, topic_id, partition), None)
        return done

    def summary(self, group_id: str, topic_id: UUID, partition: int) -> StateSummary:
        return self.states[group_id, topic_id, partition][1]

    def _done(self, partition: int) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        if partition in self.fails:
            done.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        elif self.waits:
            self.waiting.append(done)
        else:
            done.resolve(None)
        return done

    def release(self) -> None:
        """Settles all that waits."""
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each.resolve(None)


class Share:
    """Share groups of a world, and one group of them."""

    def __init__(self, world: GroupWorld) -> None:
        self.world, broker = world, world.broker
        self.persister = MemoryPersister()
        self.footprint = Footprint()
        around = Surroundings(
            world.clock.now_ms,
            lambda: broker.topics.image,
            lambda: broker.config.broker_config,
            broker.config.group_config,
        )
        rows = RowWriter(broker.groups.topic)
        self.groups = ShareGroups(
            broker.groups.deadlines, rows, around, self.persister, self.footprint
        )
        self.group: ShareGroup = self.groups.share_of(Group(GROUP, 0, self.footprint))
        self._read = 0

    def beat(self, member: str, epoch: int, *names: str, **said: Any) -> Any:
        """The answer to one heartbeat, or what its answer will be put in."""
        beat = ShareHeartbeat(
            GROUP, member, epoch, said.get("rack_id"), names or None, "client", "/127.0.0.1"
        )
        if beat.leaves:
            return answer_of(self.groups.leave(self.group, beat))
        return answer_of(self.groups.heartbeat(self.group, beat))

    def batches(self) -> list[list[ShareRow]]:
        """Records of share groups that were written since the last call, batch by batch."""
        topic = self.world.broker.topics.image.topics["__consumer_offsets"]
        found = [
            [
                read_share_row(ShareKind(each.key[1]), each.key, each.value)
                for each in iter_records(data)
                if each.key is not None
            ]
            for partition in topic.partitions
            for data, _ in batches_of(partition.log, 1 << 20)
        ]
        fresh, self._read = found[self._read :], len(found)
        return fresh


def answer_of(outcome: Any) -> Any:
    """The answer, or the list that it comes into."""
    if isinstance(outcome, ShareHeard):
        return outcome
    came: list[Any] = []
    outcome.listen(lambda value, error: came.append(value if error is None else error))
    if not came:
        return came
    if isinstance(came[0], BaseException):
        raise came[0]
    return came[0]


async def share_world(**settings: str) -> Share:
    """A broker with topic "t" of two partitions and topic "u" of one."""
    world = await group_world(**settings)
    await world.make_topic("u", 1)
    return Share(world)
