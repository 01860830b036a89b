"""Reads transactional ids back from a partition of `__transaction_state`. Runs on a lane.

Later records win over earlier ones, a record without a value takes back. A record that cannot be
read is counted and stepped over; a damaged batch ends it with CorruptBatch, because what was read
would be wrong.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.state.reading import LeftOut, batches_of
from broker.transactions.transaction import Facts, recalled
from broker.transactions.transaction_records import read_row
from protocol.records.record import Record, iter_records
from storage.log.log import Log


@dataclass(slots=True)
class RememberedTransactions:
    """Transactional ids of one partition."""

    facts: dict[str, Facts] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    """Records that could not be read."""


def remembered(log: Log, chunk_bytes: int) -> RememberedTransactions:
    """Reads the ids of a partition, in pieces of about `chunk_bytes`. Blocks.

    KafkaError when the disk refuses, CorruptBatch when a batch is damaged.
    """
    found = RememberedTransactions()
    for data, header in batches_of(log, chunk_bytes):
        if header.is_control:
            continue
        for record in iter_records(data):
            try:
                _apply(found, record)
            except Exception as error:  # noqa: BLE001 - whatever it holds, the others count
                found.left_out.add(record.offset, error)
    return found


def producer_ids_in(log: Log, chunk_bytes: int) -> Iterator[int]:
    """Producer ids of the transactional ids of a partition: those of before, and those to come.

    As `remembered`.
    """
    for each in remembered(log, chunk_bytes).facts.values():
        yield from (each.previous_producer_id, each.producer_id, each.next_producer_id)


def _apply(found: RememberedTransactions, record: Record) -> None:
    row = read_row(record.key, record.value)
    if row is None:
        return
    if row.value is None:
        found.facts.pop(row.transactional_id, None)
    else:
        found.facts[row.transactional_id] = recalled(row.value)
