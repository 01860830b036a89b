"""State of a transactional id at one moment, and the transitions to the next.

Pure: it knows no clock, no log and no loop. A moment (`Facts`) is never changed; each function
makes the next one, which counts once it is durable. Names and rules are those of Kafka's
`TransactionMetadata`; version 2 of the protocol is KIP-890's.
"""

from dataclasses import dataclass, replace
from enum import Enum

from broker.transactions.transaction_records import (
    NONE,
    PartitionsSchema,
    TransactionLogValue,
)
from protocol.errors import DecodeError

Place = tuple[str, int]
"""A topic and a partition's number."""

MAX_EPOCH = 32767
LAST_EPOCH_OF_CLIENTS = MAX_EPOCH - 1  # the one after it is kept for fencing
VERSION_2 = 2


class TransactionState(Enum):
    """States of a transaction; the values are the wire's."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


_NUMBERS = {state: number for number, state in enumerate(TransactionState)}
_STATES = dict(enumerate(TransactionState))
PREPARED = {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}
OVER = {TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One moment. Times in ms since 1970, -1 for none; ids and epochs are -1 when there is none."""

    producer_id: int
    producer_epoch: int = NONE
    last_epoch: int = NONE
    """The epoch before this one, while its owner may still ask for it again. Not remembered."""
    previous_producer_id: int = NONE
    next_producer_id: int = NONE
    """Comes into force when the transaction has ended, since the present id has no epochs left."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[Place] = frozenset()
    started_ms: int = NONE
    updated_ms: int
    client_version: int = 0
    """Of the transaction protocol; 2 ends every transaction with a new epoch."""

    @property
    def is_exhausted(self) -> bool:
        """True when no further epoch may be given to a client."""
        return self.producer_epoch >= LAST_EPOCH_OF_CLIENTS

    @property
    def is_fenced_for_good(self) -> bool:
        """True when the epoch that is kept for fencing is in force: no client may have it."""
        return self.producer_epoch > LAST_EPOCH_OF_CLIENTS

    @property
    def is_commit(self) -> bool:
        """True when a prepared transaction commits."""
        return self.state is TransactionState.PREPARE_COMMIT

    def remembered(self) -> TransactionLogValue:
        """As it is written."""
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(self.partitions):
            topics.setdefault(topic, []).append(index)
        partitions = [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in topics.items()
        ]
        return TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=_NUMBERS[self.state],
            transaction_partitions=None if self.state is TransactionState.EMPTY else partitions,
            transaction_last_update_timestamp_ms=self.updated_ms,
            transaction_start_timestamp_ms=self.started_ms,
            client_transaction_version=self.client_version,
        )


def recalled(value: TransactionLogValue) -> Facts:
    """As it was written. DecodeError for a state that is unknown."""
    state = _STATES.get(value.transaction_status)
    if state is None:
        raise DecodeError(f"transaction status {value.transaction_status} is not known")
    return Facts(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def next_epoch(facts: Facts, expected_epoch: int | None, timeout_ms: int, now_ms: int) -> Facts:
    """A producer begins with the next epoch; one that `expected` the present one goes on (KIP-360).

    A repetition of that request gets the same epoch again.
    """
    epoch, last = facts.producer_epoch + 1, NONE
    if expected_epoch is not None:
        last = facts.producer_epoch
        if facts.producer_epoch not in {expected_epoch, NONE}:
            epoch, last = facts.producer_epoch, facts.last_epoch
    return _begun(replace(facts, producer_epoch=epoch, last_epoch=last), timeout_ms, now_ms)


def next_producer(
    facts: Facts, producer_id: int, timeout_ms: int, now_ms: int, *, last_epoch: int
) -> Facts:
    """A producer begins with another id, because the present one has no epochs left.

    `last_epoch`: the one that it said it had, if it goes on.
    """
    rotated = replace(
        facts,
        producer_id=producer_id,
        producer_epoch=0,
        previous_producer_id=facts.producer_id,
        last_epoch=last_epoch,
    )
    return _begun(rotated, timeout_ms, now_ms)


def _begun(facts: Facts, timeout_ms: int, now_ms: int) -> Facts:
    return replace(
        facts,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        next_producer_id=NONE,
        timeout_ms=timeout_ms,
        started_ms=NONE,
        updated_ms=now_ms,
    )


def joined(facts: Facts, places: frozenset[Place], version: int, now_ms: int) -> Facts:
    """Partitions take part in the transaction, which begins with the first of them."""
    is_going_on = facts.state is TransactionState.ONGOING
    return replace(
        facts,
        state=TransactionState.ONGOING,
        partitions=facts.partitions | places if is_going_on else places,
        started_ms=facts.started_ms if is_going_on else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def prepared(
    facts: Facts, now_ms: int, *, commit: bool, version: int, next_producer_id: int
) -> Facts:
    """Its owner ends the transaction; by version 2 that takes an epoch."""
    epoch, last = facts.producer_epoch, facts.last_epoch
    if version >= VERSION_2:
        epoch, last = epoch + 1, epoch
    is_going_on = facts.state is TransactionState.ONGOING
    return replace(
        facts,
        state=TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
        producer_epoch=epoch,
        last_epoch=last,
        next_producer_id=next_producer_id,
        started_ms=facts.started_ms if is_going_on else now_ms,
        updated_ms=now_ms,
        client_version=version,
    )


def fenced(facts: Facts, now_ms: int) -> Facts:
    """Aborts the transaction and fences its owner: its epoch is old from now on.

    Version 2 raises the epoch by two, since the owner would expect an epoch higher by one.
    """
    bump = 2 if facts.client_version >= VERSION_2 else 1
    return replace(
        facts,
        state=TransactionState.PREPARE_ABORT,
        producer_epoch=min(facts.producer_epoch + bump, MAX_EPOCH),
        last_epoch=NONE,
        updated_ms=now_ms,
    )


def completed(facts: Facts, now_ms: int) -> Facts:
    """All markers are written."""
    over = replace(
        facts,
        state=TransactionState.COMPLETE_COMMIT
        if facts.is_commit
        else TransactionState.COMPLETE_ABORT,
        partitions=frozenset(),
        updated_ms=now_ms,
    )
    if facts.next_producer_id == NONE:
        return over
    return replace(
        over,
        producer_id=facts.next_producer_id,
        producer_epoch=0,
        previous_producer_id=facts.producer_id,
        next_producer_id=NONE,
    )
