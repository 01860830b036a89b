"""Feeds batches of the log to what is remembered of producers and epochs (semantics 9.3, 10)."""

from protocol.records.batch import CONTROL, read_header
from protocol.records.markers import ABORT, marker_of
from protocol.records.scan import BatchRow
from storage.index.txn_index import AbortedTxn
from storage.producers.leader_epochs import LeaderEpochs
from storage.producers.producer_state import CompletedTransaction, ProducerStates
from storage.scan.log_scan import LogScan
from storage.segment.segment import Segment


def replay_rows(
    rows: list[BatchRow], data: memoryview, producers: ProducerStates, epochs: LeaderEpochs | None
) -> list[AbortedTxn]:
    """Take in the batches of a chunk that the producers' state does not know yet.

    The answer are the transactions that were aborted in it.
    """
    known = producers.end_offset
    epoch = None
    aborted = []
    for row in rows:
        if epochs is not None and row[11] != epoch:
            epoch = row[11]
            latest = epochs.latest
            if latest is None or latest.epoch < epoch:
                epochs.assign(epoch, row[1])
        if row[8] >= 0 and row[1] >= known:
            ended = _replay(row, data, producers)
            if ended is not None and ended.is_aborted:
                aborted.append(aborted_of(ended))
    return aborted


def replay_producers(
    segments: tuple[Segment, ...], producers: ProducerStates, end_offset: int
) -> None:
    """Read the log from where the producers' state ends. DiskError."""
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        if following > producers.end_offset:
            scan = LogScan(segment.file(), limit=segment.size_bytes)
            for chunk in scan.chunks():
                replay_rows(chunk.rows, chunk.data, producers, None)
    producers.end_offset = end_offset


def _replay(
    row: BatchRow, data: memoryview, producers: ProducerStates
) -> CompletedTransaction | None:
    if not row[7] & CONTROL:
        producers.update(read_header(data, row[0]), row[1], row[4])
        return None
    marker = marker_of(data[row[0] : row[0] + row[5]])
    if marker is None:
        return None
    return producers.end_transaction(
        row[8],
        row[9],
        marker.coordinator_epoch,
        row[1],
        row[4],
        is_aborted=marker.kind == ABORT,
    )


def aborted_of(ended: CompletedTransaction) -> AbortedTxn:
    """The entry of the transaction index that says that it was aborted."""
    return AbortedTxn(
        ended.producer_id, ended.first_offset, ended.last_offset, ended.last_stable_offset
    )
