"""Share groups' reads of records (KIP-932): sessions, what they hold, and how that ends."""

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from broker.fetching.damage import DamageMet
from broker.guards.clock_guard import ClockWatch
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.partition import Partition
from broker.runtime.deadlines import Deadlines
from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import gather
from broker.runtime.memory_account import MemoryAccount, MemoryClass
from broker.runtime.probes import BrokerProbes
from broker.share.acknowledging import Acknowledging
from broker.share.fetch import ShareFetcher, ShareFetchParts
from broker.share.fetch_look import FetchTerms
from broker.share.letters.dead_letters import AppendElsewhere, DeadLetters, nobody_elsewhere
from broker.share.served_partition import ShareParts
from broker.share.served_partitions import ServedPartitions
from broker.share.sessions import ShareSession, ShareSessions
from broker.share.share_counts import ShareCounts
from broker.share.state.store import ShareStates
from broker.topics.creation import TopicRules
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from storage.env import Clock

WAITING_BYTES = 24
"""Memory for a record that waits for its time."""
SET_MS = 2
"""Difference of two clocks in a second by which one of them was set."""


class ShareServices(NamedTuple):
    """The services of the broker that share groups read with."""

    topics: TopicCatalog
    states: ShareStates
    config: ConfigStore
    clock: Clock
    waiters: FetchWaiters
    rules: TopicRules
    deadlines: Deadlines
    damage: DamageMet
    clock_watch: ClockWatch
    memory: MemoryAccount
    probes: BrokerProbes
    append_elsewhere: AppendElsewhere = nobody_elsewhere


class ShareReads:
    """All that members of share groups read. Used from the event loop only."""

    def __init__(self, services: ShareServices) -> None:
        """Nobody reads."""
        config, waiters = services.config, services.waiters
        self._services = services
        self._ahead_ms = 0.0
        self.sessions = ShareSessions(lambda: config.broker_config.group_share_max_share_sessions)
        self.counts = ShareCounts()
        self.letters = DeadLetters(
            services.topics,
            services.rules,
            config,
            services.clock,
            services.probes,
            elsewhere=services.append_elsewhere,
        )
        self.partitions = ServedPartitions(
            ShareParts(
                services.states,
                config,
                services.clock,
                services.deadlines,
                waiters.wake_all,
                self.counts,
                services.damage,
                services.clock_watch.trusted_ms,
                self._may_grow,
                self.letters,
            )
        )
        self._memory = services.memory
        services.memory.watch(MemoryClass.GROUPS, lambda: self.counts.waiting * WAITING_BYTES)
        self.acknowledging = Acknowledging(services.topics, self.partitions)
        self._waiters = waiters
        self._fetches = ShareFetchParts(
            services.topics, self.sessions, self.partitions, waiters, services.damage, self.counts
        )

    def fetch(
        self, session: ShareSession, terms: FetchTerms, may_read: Callable[[str], bool]
    ) -> ShareFetcher:
        """A fetch of a session, to begin."""
        return ShareFetcher(self._fetches, session, terms, may_read)

    def follow_clock(self) -> None:
        """Looks for what is due by a clock that was set, or that is trusted again."""
        clock = self._services.clock
        ahead_ms = self._services.clock_watch.trusted_ms() - clock.monotonic() * 1000
        if abs(ahead_ms - self._ahead_ms) > SET_MS:
            self._ahead_ms = ahead_ms
            for served in self.partitions.all():
                served.time_came()

    def _may_grow(self) -> bool:
        return self._memory.has_room(MemoryClass.GROUPS, WAITING_BYTES)

    def after_ms(self, wait_ms: int) -> Deferred[None]:
        """Settled after so long: for a client that would ask again at once."""
        answer: Deferred[None] = Deferred()
        waiter = self._waiters.register((), 1, wait_ms, lambda: answer.resolve(None))
        answer.when_abandoned(lambda: self._waiters.cancel(waiter))
        answer.when_hurried(lambda: self._waiters.give_up(waiter))
        return answer

    def end(self, session: ShareSession) -> Deferred[None]:
        """Ends a session; settled when all that its member holds was released, durably or not."""
        self.sessions.end(session)
        released = [
            each.release(session.member) for each in self.partitions.of_group(session.group)
        ]
        if not self.sessions.has_any(session.group):
            self.partitions.leave_group(session.group)
        settled: list[Deferred[None] | None] = [_settled(each) for each in released]
        gathered = gather(settled, lambda _: None)
        return gathered if isinstance(gathered, Deferred) else resolved(None)

    def connection_lost(self, connection_id: int) -> None:
        """Ends the sessions that a lost connection began."""
        for session in self.sessions.of_connection(connection_id):
            self.counts.sessions_lost += 1
            self.end(session)

    def led_no_more(self, partition: Partition) -> None:
        """In a fleet: another node leads a partition."""
        self.partitions.led_no_more(partition)

    def topics_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Forgets share partitions of topics that are gone."""
        self.partitions.topics_deleted(topic_ids)


def _settled(release: Deferred[None]) -> Deferred[None]:
    """The same, without its error: what could not be released is free when its lock ends."""
    answer: Deferred[None] = Deferred()
    release.listen(lambda _, error: answer.resolve(None))  # noqa: ARG005 - see above
    return answer
