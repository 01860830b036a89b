"""The coordinator: which transactional ids there are, who may do what with them, what time does.

A transactional id is changed by one request at a time (`Steps.turn`); the next moment
counts when it is durable, and requests meanwhile wait for that, at most as long as the disk
takes. A transaction ends in three steps: that it will is made durable and answered, the markers are
written, that they are is written. Who comes between waits for the end, so that the next transaction
need not be tried again and again; when markers cannot be written it is CONCURRENT_TRANSACTIONS
(51), and they are tried again.

It answers COORDINATOR_LOAD_IN_PROGRESS (14) for ids whose partition is still being read after the
start, and COORDINATOR_NOT_AVAILABLE (15) for those of a partition that cannot be read: never wrong
data. Used from the event loop only.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from broker.runtime.event_log import event
from broker.state.loading import StateLoading
from broker.state.reading import LeftOut
from broker.state.state_topic import StateTopic
from broker.transactions import rules
from broker.transactions.loading import RememberedTransactions, remembered
from broker.transactions.participants import Ending
from broker.transactions.rules import ProducerClaim
from broker.transactions.state_topic import transaction_state_topic
from broker.transactions.steps import Steps, check_there
from broker.transactions.transaction import (
    PREPARED,
    VERSION_2,
    Facts,
    Place,
    TransactionState,
    joined,
    next_epoch,
    next_producer,
    prepared,
)
from broker.transactions.transaction_records import NONE
from broker.transactions.transactional import Transactional
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.guards.clock_guard import ClockWatch
    from broker.partitions.partition import Partition
    from broker.state.services import StateServices
    from broker.transactions.participants import Participants
    from broker.transactions.producer_ids import ProducerIds

ENDED_TOGETHER = 100  # overdue transactions, which wait for the disk together
TURN_SECONDS = 0.1
"""Longest wait of a leader's question for those that came before."""
MAX_TRANSACTIONAL_ID_BYTES = 4096  # Kafka: whatever fits a record's key


class TransactionCoordinator:
    """All transactional ids of this broker."""

    ids: dict[str, Transactional]
    topic: StateTopic
    steps: Steps
    loading: StateLoading[RememberedTransactions]

    def __init__(
        self,
        services: "StateServices",
        clock_watch: "ClockWatch",
        producer_ids: "ProducerIds",
        participants: "Participants",
    ) -> None:
        """Knows nothing until `load`."""
        self._topics = services.topics
        self._clock_watch = clock_watch
        self._producer_ids = producer_ids
        self._settings = services.config.broker_config
        self.ids = {}
        self.topic = transaction_state_topic(services)
        self.steps = Steps(self.topic, participants, services.clock, clock_watch)
        self.loading = StateLoading(
            services.lane,
            self.topic,
            remembered,
            self._restore_all,
            on_failed=_not_loaded,
            on_unreadable=_unreadable,
        )
        self._tasks: set[asyncio.Task[None]] = set()

    # --- who is asked for ---

    def check_loaded(self, transactional_id: str) -> None:
        """Raises when nothing can be said of this id now."""
        self.loading.check(transactional_id)

    def require(self, claim: ProducerClaim) -> Transactional:
        """The id that a request names; INVALID_PRODUCER_ID_MAPPING (49) for an unknown one."""
        if not claim.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A transactional id must not be empty")
        self.check_loaded(claim.transactional_id)
        owner = self.ids.get(claim.transactional_id)
        if owner is None:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"No producer has begun with the transactional id {claim.transactional_id[:256]}",
            )
        return owner

    # --- what producers ask ---

    async def begin(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None
    ) -> tuple[int, int]:
        """InitProducerId: the id and the epoch of the producer that is the owner from now on.
        Raises KafkaError.

        What the owner before left open is aborted first. An id that expires meanwhile begins as one
        that nobody has used.
        """
        self._check_begin(transactional_id, timeout_ms)
        owner = self.ids.get(transactional_id) or await self._made(transactional_id, timeout_ms)
        try:
            async with self.steps.turn(owner):
                return await self._begin(owner, timeout_ms, expected)
        except KafkaError:
            if not owner.is_gone:
                raise
        return await self.begin(transactional_id, timeout_ms, expected)

    async def _begin(
        self, owner: Transactional, timeout_ms: int, expected: tuple[int, int] | None
    ) -> tuple[int, int]:
        rules.check_may_begin(owner.facts, expected)
        if owner.facts.state is TransactionState.ONGOING:
            await self.steps.abort(owner, "fenced")
        if owner.facts.state in PREPARED:
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        facts = await self._begun(owner.facts, timeout_ms, expected)
        await self.steps.write(owner, facts)
        return facts.producer_id, facts.producer_epoch

    async def join_soon(self, claim: ProducerClaim, places: Iterable[Place]) -> None:
        """As `join` by version 2, for leaders of partitions, who ask for many producers at once:
        CONCURRENT_TRANSACTIONS (51) before long, since one must not keep the others waiting.
        """
        owner = self.require(claim)
        if owner.facts.state in PREPARED:
            rules.check_may_join(owner.facts, claim)
        await self.join(claim, places, VERSION_2, TURN_SECONDS)

    async def join(
        self,
        claim: ProducerClaim,
        places: Iterable[Place],
        version: int = 0,
        seconds: float | None = None,
    ) -> None:
        """Partitions take part in the transaction; durable when it returns.

        `seconds`: the longest wait for those who came before.
        """
        owner, wanted = self.require(claim), frozenset(places)
        async with self.steps.turn(owner, seconds):
            rules.check_may_join(owner.facts, claim)
            is_open = owner.facts.state is TransactionState.ONGOING
            if not wanted <= (owner.facts.partitions if is_open else frozenset()):
                facts = joined(owner.facts, wanted, version, self.steps.now_ms)
                self._check_room(facts)
                await self.steps.write(owner, facts)
            await self.steps.participants.join(claim, wanted)

    def check_joined(self, claim: ProducerClaim, place: Place) -> None:
        """A partition takes part in the transaction, or a KafkaError says why it does not."""
        rules.check_joined(self.require(claim).facts, claim, place)

    async def end(self, claim: ProducerClaim, *, commit: bool, version: int = 0) -> tuple[int, int]:
        """EndTxn: the end is durable when it returns; the id and epoch to go on with.

        Nothing is written into the transaction any more then. Where that is not known, KafkaError,
        and it ends all the same.
        """
        owner = self.require(claim)
        await owner.turn.acquire()
        is_ending = False
        try:
            is_ending = await self._end(owner, claim, commit=commit, version=version)
            if is_ending:
                await self.steps.close(owner)
        finally:
            if is_ending:
                self._run(self._complete_and_release(owner))
            else:
                owner.turn.release()
        facts = owner.facts
        if facts.next_producer_id != NONE:
            return facts.next_producer_id, 0
        return facts.producer_id, facts.producer_epoch

    async def _end(
        self, owner: Transactional, claim: ProducerClaim, *, commit: bool, version: int
    ) -> bool:
        check_there(owner)
        check = rules.check_end_v2 if version >= VERSION_2 else rules.check_end_v1
        if not check(owner.facts, claim, commit=commit):
            return False
        new_id = NONE
        if version >= VERSION_2 and owner.facts.is_exhausted:
            new_id = await self._producer_ids.allocate()
        facts = prepared(
            owner.facts, self.steps.now_ms, commit=commit, version=version, next_producer_id=new_id
        )
        await self.steps.write(owner, facts)
        self.steps.ended["committed" if commit else "aborted"] += 1
        return True

    # --- what time does ---

    async def abort_overdue(self) -> None:
        """Transactions whose time is over are aborted, and ends that were cut short are ended."""
        due = [
            owner
            for owner in self.steps.open.values()
            if owner.facts.state in PREPARED or self.steps.is_overdue(owner)
        ]
        for first in range(0, len(due), ENDED_TOGETHER):
            some = due[first : first + ENDED_TOGETHER]
            await asyncio.gather(*(self._settle(owner) for owner in some))

    async def _settle(self, owner: Transactional) -> None:
        try:
            async with self.steps.turn(owner):
                await self._end_overdue(owner)
        except Exception as error:  # noqa: BLE001 - one must not keep the others open
            if owner.is_gone or owner.is_elsewhere:
                return
            event(
                "transaction_not_ended", "warning",
                transactional_id=owner.transactional_id, error=repr(error),
            )  # fmt: skip

    async def _end_overdue(self, owner: Transactional) -> None:
        if owner.facts.state in PREPARED:
            await self.steps.complete(owner)
        elif self.steps.is_overdue(owner):
            event(
                "transaction_timed_out", "warning",
                transactional_id=owner.transactional_id, timeout_ms=owner.facts.timeout_ms,
            )  # fmt: skip
            await self.steps.abort(owner, "timed_out")

    async def expire(self) -> None:
        """Removes ids that were not used for long; does nothing while the clock is unverified."""
        if self._clock_watch.look():
            return
        before = self.steps.now_ms - self._settings.transactional_id_expiration_ms
        for owner in list(self.ids.values()):
            if owner.may_expire(before) and not owner.turn.locked():
                await self._forget(owner, before)

    async def _forget(self, owner: Transactional, before_ms: int) -> None:
        """Unless a request that waited for its turn, too, has used it."""
        try:
            async with self.steps.turn(owner):
                if owner.may_expire(before_ms):
                    await self.steps.forget(owner)
                    del self.ids[owner.transactional_id]
        except Exception as error:  # noqa: BLE001 - one must not keep the others
            if owner.is_gone or owner.is_elsewhere:
                return
            event(
                "transactional_id_not_expired", "warning",
                transactional_id=owner.transactional_id, error=repr(error),
            )  # fmt: skip

    # --- steps ---

    def _check_begin(self, transactional_id: str, timeout_ms: int) -> None:
        limit = self._settings.transaction_max_timeout_ms
        if len(transactional_id.encode()) > MAX_TRANSACTIONAL_ID_BYTES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A transactional id may have at most {MAX_TRANSACTIONAL_ID_BYTES} bytes",
            )
        if not 0 < timeout_ms <= limit:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"The time-out of a transaction must be between 1 and {limit} ms "
                f"(transaction.max.timeout.ms), not {timeout_ms}",
            )
        self.check_loaded(transactional_id)

    async def _made(self, transactional_id: str, timeout_ms: int) -> Transactional:
        limit = self._settings.horolog_max_transactional_ids
        if len(self.ids) >= limit:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"There are {limit} transactional ids: horolog.max.transactional.ids allows no "
                "more",
            )
        producer_id = await self._producer_ids.allocate()
        self.check_loaded(transactional_id)  # another node may have it by now
        facts = Facts(producer_id=producer_id, timeout_ms=timeout_ms, updated_ms=self.steps.now_ms)
        return self.ids.setdefault(transactional_id, Transactional(transactional_id, facts))

    async def _begun(
        self, facts: Facts, timeout_ms: int, expected: tuple[int, int] | None
    ) -> Facts:
        if not (facts.is_fenced_for_good or rules.wants_new_id(facts, expected)):
            epoch = None if expected is None else expected[1]
            return next_epoch(facts, epoch, timeout_ms, self.steps.now_ms)
        producer_id = await self._producer_ids.allocate()
        last_epoch = NONE if expected is None else expected[1]
        return next_producer(
            facts, producer_id, timeout_ms, self.steps.now_ms, last_epoch=last_epoch
        )

    def _check_room(self, facts: Facts) -> None:
        limit = self._settings.horolog_max_transaction_partitions
        if len(facts.partitions) > limit:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"A transaction may have at most {limit} partitions "
                "(horolog.max.transaction.partitions)",
            )

    async def _complete_and_release(self, owner: Transactional) -> None:
        try:
            await self.steps.complete(owner)
        except KafkaError as error:
            event(
                "transaction_not_completed", "warning",
                transactional_id=owner.transactional_id, error=error,
            )  # fmt: skip
        finally:
            owner.turn.release()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- start and stop ---

    def begin_load(self) -> None:
        """Before clients are let in: ids whose partition has records are not served yet."""
        self.loading.begin()

    async def load(self) -> None:
        """Reads the ids, partition by partition, on a lane; goes on with ends that were begun."""
        chunk_bytes = self._settings.transaction_state_log_load_buffer_size
        async for _ in self.loading.rounds(chunk_bytes):
            await self.abort_overdue()
        if self.topic.partitions and self.loading.found_all:
            await self._abort_orphans()

    async def _abort_orphans(self) -> None:
        """Open transactions that no transactional id knows of are aborted.

        A power cut that came before their first acknowledgement leaves such; nobody else would end
        them, and readers wait for ever. Where no id was ever remembered they came with the files
        of another broker, and stay as they are.
        """
        known = {
            (owner.facts.producer_id, place)
            for owner in self.steps.open.values()
            for place in owner.facts.partitions
        }
        for topic in list(self._topics.image.topics.values()):
            await asyncio.sleep(0)
            for partition in topic.partitions:
                place = topic.name, partition.index
                for producer_id, entry in list(partition.log.producers):
                    if not entry.has_open_transaction or (producer_id, place) in known:
                        continue
                    if not self._knows(producer_id, place):  # one that began meanwhile
                        event("transaction_without_owner", "warning", partition=partition)
                        ending = Ending(producer_id, entry.epoch, False, entry.coordinator_epoch)
                        await self.steps.participants.end("", ending, [place])
                        self.steps.ended["orphaned"] += 1

    def _knows(self, producer_id: int, place: Place) -> bool:
        """True when some id will end this transaction."""
        return any(
            owner.facts.producer_id == producer_id and place in owner.facts.partitions
            for owner in self.steps.open.values()
        )

    def _restore_all(self, found: RememberedTransactions) -> None:
        for name, facts in found.facts.items():
            if not self.loading.restore_one(name, partial(self._restore, name, facts)):
                self.ids.pop(name, None)
                self.steps.open.pop(name, None)

    def _restore(self, transactional_id: str, facts: Facts) -> None:
        owner = self.ids[transactional_id] = Transactional(transactional_id, facts)
        for producer_id in (facts.producer_id, facts.next_producer_id):
            self._producer_ids.is_used(producer_id)
        self.steps.restore(owner)

    # --- in a fleet ---

    async def lead(self, partition: "Partition") -> None:
        """Ids of a partition that was gained are read, and then served; ends go on."""
        await self.loading.load(partition, self._settings.transaction_state_log_load_buffer_size)
        self._run(self.abort_overdue())

    def lead_no_more(self, partition: "Partition") -> None:
        """Another node has them: whoever waits here hears so, and nothing of them is kept."""
        self.loading.lose(partition)
        for name, owner in list(self.ids.items()):
            if self.topic.index_of(name) == partition.index:
                owner.is_elsewhere = True
                self.steps.open.pop(name, None)
                del self.ids[name]

    async def stop(self) -> None:
        """Ends that are under way are broken off: the next start goes on with them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _not_loaded(partition: "Partition", error: Exception) -> None:
    event("transactions_not_loaded", "error", partition=partition, error=error)


def _unreadable(partition: "Partition", left_out: LeftOut) -> None:
    event(
        "transaction_records_unreadable", "warning",
        partition=partition, records=left_out.count, first="; ".join(left_out.named),
    )  # fmt: skip
