"""Rules of a producer's requests: fencing, late requests, repeated requests.

Pure judgements on one moment (`Facts`), each the answer to one request; a refusal is a KafkaError
with Kafka's code. Rules: Kafka's `TransactionCoordinator`, the end of a transaction by its
`endTransaction` (version 2) and `endTransactionWithTV1`.
"""

from typing import NamedTuple

from broker.transactions.transaction import (
    LAST_EPOCH_OF_CLIENTS,
    PREPARED,
    Facts,
    Place,
    TransactionState,
)
from broker.transactions.transaction_records import NONE
from protocol.errors import ErrorCode, KafkaError


class ProducerClaim(NamedTuple):
    """Identity that a producer claims."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def check_may_begin(facts: Facts, expected: tuple[int, int] | None) -> None:
    """InitProducerId of one that names the id and epoch it had (KIP-360): it must be the present.

    PRODUCER_FENCED (90) when another one has begun since.
    """
    if expected is None or facts.producer_epoch == NONE:
        return
    producer_id, epoch = expected
    known = producer_id == facts.producer_id or (
        producer_id == facts.previous_producer_id and epoch >= LAST_EPOCH_OF_CLIENTS
    )
    if not known:
        raise _fenced(producer_id, epoch)
    if wants_new_id(facts, expected):
        return
    if epoch not in {facts.producer_epoch, facts.last_epoch}:
        raise _fenced(producer_id, epoch)


def wants_new_id(facts: Facts, expected: tuple[int, int] | None) -> bool:
    """True when the producer that begins now cannot have an epoch of the present id."""
    return facts.is_exhausted and (expected is None or expected[1] == facts.producer_epoch)


def check_owner(facts: Facts, claim: ProducerClaim) -> None:
    """INVALID_PRODUCER_ID_MAPPING (49) or PRODUCER_FENCED (90) for anybody but the owner."""
    if claim.producer_id != facts.producer_id:
        raise _not_its_id(claim, facts)
    if claim.producer_epoch != facts.producer_epoch:
        raise _fenced(claim.producer_id, claim.producer_epoch)


def check_may_join(facts: Facts, claim: ProducerClaim) -> None:
    """Checks that partitions may join: CONCURRENT_TRANSACTIONS (51) while the last one ends."""
    check_owner(facts, claim)
    if facts.state in PREPARED:
        raise _still_ends(claim)


def check_joined(facts: Facts, claim: ProducerClaim, place: Place) -> None:
    """TRANSACTION_ABORTABLE (120) unless the partition takes part; else as `check_may_join`."""
    check_may_join(facts, claim)
    if facts.state is not TransactionState.ONGOING or place not in facts.partitions:
        raise KafkaError(
            ErrorCode.TRANSACTION_ABORTABLE,
            f"{place[0]}-{place[1]} is not in the transaction of {claim.transactional_id}",
        )


def check_end_v1(facts: Facts, claim: ProducerClaim, *, commit: bool) -> bool:
    """True when the transaction is to be ended now; False when that is done already."""
    check_owner(facts, claim)
    match facts.state:
        case TransactionState.ONGOING:
            return True
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT if (
            commit == facts.is_commit
        ):
            raise _still_ends(claim)
        case TransactionState.COMPLETE_COMMIT if commit:
            return False
        case TransactionState.COMPLETE_ABORT if not commit:
            return False
        case _:
            raise _wrong_state(facts, claim, commit=commit)


def check_end_v2(facts: Facts, claim: ProducerClaim, *, commit: bool) -> bool:
    """Likewise by version 2, where the epoch tells a repetition from the next end.

    A transaction without partitions may be aborted, which takes an epoch all the same.
    """
    took_epoch = claim.producer_epoch + 1 == facts.producer_epoch
    took_id = (
        claim.producer_id == facts.previous_producer_id
        and claim.producer_epoch == LAST_EPOCH_OF_CLIENTS
        and facts.producer_epoch == 0
    )
    if claim.producer_id != facts.producer_id and not took_id:
        raise _not_its_id(claim, facts)
    is_repeated = took_epoch or took_id
    _check_epoch_v2(facts, claim, is_repeated=is_repeated, took_epoch=took_epoch)
    match facts.state:
        case TransactionState.ONGOING:
            return True
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT if (
            commit == facts.is_commit
        ):
            raise _still_ends(claim)
        case TransactionState.COMPLETE_COMMIT if is_repeated and commit:
            return False
        case TransactionState.COMPLETE_ABORT if is_repeated and not commit:
            return False
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT if (
            not is_repeated and not commit
        ):
            return True
        case TransactionState.EMPTY if not commit:
            return True
        case _:
            raise _wrong_state(facts, claim, commit=commit)


def _check_epoch_v2(
    facts: Facts, claim: ProducerClaim, *, is_repeated: bool, took_epoch: bool
) -> None:
    is_present = claim.producer_epoch == facts.producer_epoch
    match facts.state:
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            is_valid = took_epoch
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT:
            is_valid = is_repeated or is_present
        case _:
            is_valid = is_present
    if not is_valid:
        raise _fenced(claim.producer_id, claim.producer_epoch)


def _fenced(producer_id: int, epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"Epoch {epoch} of producer {producer_id} is not the present one: another one has begun, "
        "or the transaction was aborted by its time-out",
    )


def _not_its_id(claim: ProducerClaim, facts: Facts) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{claim.transactional_id} belongs to producer {facts.producer_id}, "
        f"not to {claim.producer_id}",
    )


def _still_ends(claim: ProducerClaim) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS,
        f"The last transaction of {claim.transactional_id} is not over yet",
    )


def _wrong_state(facts: Facts, claim: ProducerClaim, *, commit: bool) -> KafkaError:
    wanted = "committed" if commit else "aborted"
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"The transaction of {claim.transactional_id} is {facts.state.value}: "
        f"it cannot be {wanted}",
    )
