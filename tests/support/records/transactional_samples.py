"""A partition with transactions, committed, aborted and open, and everything that speaks of them.

Made by hand from the rules (semantics.md 9.2, 10), since the proof under test plays the log through
by the same code as the broker.
"""

import struct
from pathlib import Path

from protocol.records.builder import build_batch
from storage.index.txn_index import AbortedTxn, TxnIndex
from storage.posix import real_env
from storage.producers import producer_snapshots
from storage.producers.producer_state import ProducerEntry, ProducerStates, RememberedBatch

ABORT, COMMIT = 0, 1


def _data(offset: int, producer: int, sequence: int, count: int = 2) -> bytes:
    return bytes(
        build_batch(
            [(1000 + offset + i, b"k", b"v") for i in range(count)],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
            leader_epoch=0,
        )
    )


def _marker(offset: int, producer: int, kind: int) -> bytes:
    return bytes(
        build_batch(
            [(1000 + offset, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3))],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            control=True,
            leader_epoch=0,
        )
    )


def write_transactions(directory: Path) -> None:
    """Producer 1 aborts at 5 while 2 is open; 2 commits at 8; 1 aborts at 11; 3 stays open."""
    directory.mkdir(parents=True)
    log = [
        _data(0, 1, 0), _data(2, 2, 0), _data(4, 1, 2, count=1), _marker(5, 1, ABORT),
        _data(6, 2, 2), _marker(8, 2, COMMIT), _data(9, 1, 3), _marker(11, 1, ABORT),
        _data(12, 3, 0),
    ]  # fmt: skip
    (directory / f"{0:020d}.log").write_bytes(b"".join(log))
    fs = real_env().fs
    index = TxnIndex(fs, str(directory / f"{0:020d}.txnindex"), 0)
    index.append(AbortedTxn(1, 0, 5, 2))
    index.append(AbortedTxn(1, 9, 11, 12))
    index.flush()
    states = ProducerStates()
    one = ProducerEntry(0, batches=(RememberedBatch(4, 10, 1, 1010),), last_timestamp=1011)
    two = ProducerEntry(0, batches=(RememberedBatch(3, 7, 1, 1007),), last_timestamp=1008)
    three = ProducerEntry(
        0, batches=(RememberedBatch(1, 13, 1, 1013),), last_timestamp=1013, txn_first_offset=12
    )
    one.coordinator_epoch = two.coordinator_epoch = 3
    for producer_id, entry in ((1, one), (2, two), (3, three)):
        states.restore(producer_id, entry)
    states.end_offset = 14
    producer_snapshots.save(fs, str(directory), states)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")


def write_compacted_transaction(directory: Path, first_offset: int = 0) -> None:
    """Producer 1 writes from 0 on and commits at 4; a snapshot of 4 says that it began at
    `first_offset`; compaction has removed what lay before 2."""
    directory.mkdir(parents=True)
    log = [_data(2, 1, 2), _marker(4, 1, COMMIT)]
    (directory / f"{0:020d}.log").write_bytes(b"".join(log))
    states = ProducerStates()
    entry = ProducerEntry(
        0,
        batches=(RememberedBatch(3, 3, 1, 1003),),
        last_timestamp=1003,
        txn_first_offset=first_offset,
    )
    states.restore(1, entry)
    states.end_offset = 4
    producer_snapshots.save(real_env().fs, str(directory), states)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
