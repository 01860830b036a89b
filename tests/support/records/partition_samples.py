"""A partition's directory with everything in it that a dump can show, as Kafka would write it."""

import struct
from pathlib import Path

from protocol.records.batch import DELETE_HORIZON, HEADER, seal
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy_builder import build_set
from protocol.records.scan import BatchRow, scan_batches
from storage.index.txn_index import AbortedTxn, TxnIndex
from storage.posix import real_env
from storage.producers import producer_snapshots
from storage.producers.leader_epochs import LeaderEpochs
from storage.producers.producer_state import ProducerEntry, ProducerStates, RememberedBatch

HEADER_RECORD: NewRecord = (-1, b"", b"", [("h", b"1"), ("g", None), ("ä", b"\xff")])
ABORT, COMMIT = 0, 1
LEADER_CHANGE = 2


class SampleLog:
    """Batches one behind the other, with rising offsets."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.end_offset = 0

    def add(self, *records: NewRecord, **batch: object) -> None:
        self.data += build_batch(records, base_offset=self.end_offset, **batch)  # type: ignore[arg-type]
        self.end_offset += len(records)

    def add_patched(self, *records: NewRecord, flags: int = 0, last_delta: int = 0) -> None:
        """A batch as only a cleaner leaves it."""
        batch = build_batch(records, base_offset=self.end_offset, producer_id=9, base_sequence=4)
        header = list(HEADER.unpack_from(batch))
        header[5] |= flags
        header[6] = last_delta
        HEADER.pack_into(batch, 0, *header)
        seal(batch, 0, len(batch))
        self.data += batch
        self.end_offset += last_delta + 1


def varied_log() -> bytes:
    """Format 2: all codecs, odd records, transactions, markers, and what compaction leaves."""
    log = SampleLog()
    for codec in Codec:
        log.add(
            (1000 + log.end_offset, b"k", b"v"),
            (1, None, None),
            (2, b"\xff\xfe\xe2\x82", "häß".encode()),
            HEADER_RECORD,
            codec=codec,
            leader_epoch=3,
        )
    log.add((5, b"a", b"b"), log_append_time=99_999)
    log.add(
        (5, b"a", b"b"),
        (6, b"a", b"b"),
        producer_id=7,
        producer_epoch=1,
        base_sequence=2**31 - 1,
        transactional=True,
    )
    for kind in (ABORT, COMMIT, LEADER_CHANGE + 70):
        key, value = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 5)
        log.add((8, key, value), producer_id=7, producer_epoch=1, transactional=True, control=True)
    log.add_patched((5, b"a", b"b"), flags=DELETE_HORIZON)
    log.add_patched(last_delta=3)
    return bytes(log.data)


def old_log() -> bytes:
    """Formats 0 and 1, plain and in wrappers of each codec, stamped and not."""
    data, offset = b"", 0
    for magic, stamp in ((0, None), (1, None), (1, 777_777)):
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4):
            rows = [
                (offset, 5, b"k", b"v"),
                (offset + 1, 9, None, b"vv"),
                (offset + 2, 7, b"k", None),
            ]
            data += build_set(rows, magic, codec=codec, log_append_time=stamp)
            offset += len(rows)
    return data


def _running_maximum(rows: list[BatchRow]) -> bytes:
    entries, largest = [], -1
    for row in rows:
        if row[4] > largest:
            largest = row[4]
            entries.append(struct.pack(">qi", largest, row[2]))
    return b"".join(entries)


def write_samples(directory: Path) -> list[Path]:
    """Writes one file of each kind; the files, in the order of their names."""
    directory.mkdir(parents=True)
    fs = real_env().fs
    base = f"{0:020d}"
    (directory / f"{base}.log").write_bytes(varied_log())
    (directory / f"{1000:020d}.log").write_bytes(old_log())
    rows = scan_batches(varied_log()).batches
    index = b"".join(struct.pack(">ii", row[2], row[0]) for row in rows[1:])
    (directory / f"{base}.index").write_bytes(index + bytes(80))
    (directory / f"{base}.timeindex").write_bytes(_running_maximum(rows) + bytes(120))
    for suffix in (".index", ".timeindex"):
        (directory / f"{1000:020d}{suffix}").write_bytes(b"")
    aborted = TxnIndex(fs, str(directory / f"{base}.txnindex"), 0)
    aborted.append(AbortedTxn(7, 21, 23, 24))
    aborted.append(AbortedTxn(2**62, 22, 2**40, 2**40 + 1))
    aborted.flush()
    states = ProducerStates()
    states.restore(7, ProducerEntry(1, batches=(RememberedBatch(0, 22, 1, 6),), last_timestamp=8))
    states.restore(8, ProducerEntry(0, coordinator_epoch=5, txn_first_offset=30))
    states.end_offset = 31
    producer_snapshots.save(fs, str(directory), states)
    epochs = LeaderEpochs(fs, str(directory / "leader-epoch-checkpoint"))
    epochs.assign(0, 0)
    epochs.assign(3, 12)
    epochs.save()
    return sorted(directory.iterdir())
