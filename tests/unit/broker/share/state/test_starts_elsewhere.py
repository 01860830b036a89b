"""Retention at a leader, of queues whose states another node of a fleet remembers."""

from broker.runtime.deferred import Deferred
from broker.share.state.key import ShareKey
from broker.share.state.over_nodes.starts import StartsElsewhere
from broker.share.state.remembered import SharePartitionState
from broker.share.undelivered import UndeliveredRecords
from protocol.errors import ErrorCode, KafkaError
from storage.retention.undelivered import Undelivered
from tests.support.worlds.share_read_world import GROUP, ShareReadWorld

KEPT_MS = 60_000


class OtherNode:
    """The share coordinator, elsewhere."""

    def __init__(self) -> None:
        self.start = 7
        self.is_silent = False
        self.asked: list[ShareKey] = []

    def summary(self, key: ShareKey) -> Deferred[SharePartitionState]:
        self.asked.append(key)
        answer: Deferred[SharePartitionState] = Deferred()
        if self.is_silent:
            answer.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        else:
            answer.resolve(SharePartitionState(0, 1, 0, self.start, 0, [], 0, 0))
        return answer


async def test_what_other_nodes_remember_is_kept_as_of_the_last_round() -> None:
    world, other = ShareReadWorld(None, 0), OtherNode()
    await world.make_topic(partitions=2)
    broker = world.broker
    await broker.share_states.topic.make()
    broker.share_states.shared(world.clock.monotonic, 1)  # nothing of it is led here
    starts = StartsElsewhere(broker.share_states, broker.topics, broker.config, other.summary)
    kept = UndeliveredRecords(
        broker.share_states, broker.share_reads.partitions, broker.config, starts.of
    )
    log = world.partition().log
    await starts.refresh()
    assert not other.asked
    assert not kept.of(log), "no group keeps anything"

    hold = {"horolog_share_retention_hold": "true", "horolog_share_delay_max_ms": str(KEPT_MS)}
    await world.configure(**hold)
    assert kept.of(log) == [Undelivered(0, KEPT_MS)], "it is not known"
    await starts.refresh()
    assert sorted(other.asked) == [ShareKey(GROUP, world.topic_id(), each) for each in (0, 1)]
    assert kept.of(log) == [Undelivered(7, KEPT_MS)]
    other.start = -1
    await starts.refresh()
    assert not kept.of(log), "nobody has read there"
    other.is_silent = True
    await starts.refresh()
    assert kept.of(log) == [Undelivered(0, KEPT_MS)]
