"""Partition directories of keyed records, made by the bytes from one seed, and what is in them.

Transactions (open ones too), several producers, tombstones, records without key, dirty and missing
times, every codec, segments of any size: what a Kafka leaves that served transactions.
"""

import random
import struct
from dataclasses import dataclass, field

from protocol.records.builder import NewRecord, build_batch
from protocol.records.compression import Codec
from storage.env import Env
from storage.files.layout import LOG, TXN_INDEX, segment_name
from storage.index.txn_index import AbortedTxn, TxnIndex

NOW = 1_700_000_000_000
TIMES = (NOW, NOW - 5, -1, 0, NOW // 1000, NOW * 1000, NOW + 10**12)
ABORT, COMMIT = 0, 1


@dataclass(slots=True)
class Row:
    """A record of data as it was written."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int
    batch: int
    """Base offset of its batch."""
    segment: int
    """Base offset of its segment."""
    producer: int
    is_aborted: bool = False


@dataclass(slots=True)
class KeyedLog:
    """Contents of the directory."""

    rows: list[Row] = field(default_factory=list)
    markers: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Offset of each marker: producer, first offset of its transaction (or its own)."""
    end_offset: int = 0


class _Writer:
    def __init__(self, seed: int, env: Env, path: str) -> None:
        self.dice = random.Random(seed)
        self.made = KeyedLog()
        self._env, self._path = env, path
        self._data = bytearray()
        self._base = 0
        self._open: dict[int, list[Row]] = {}  # open transactions by producer
        self._aborted: list[AbortedTxn] = []
        self._sequences: dict[int, int] = {}

    def run(self) -> KeyedLog:
        self._env.fs.make_dir(self._path)
        for _ in range(self.dice.randint(1, 4)):
            for _ in range(self.dice.randint(1, 6)):
                self._write_some()
            self._end_segment()
        if self.dice.random() < 0.8:
            for producer in list(self._open):
                self._end_transaction(producer)
            self._end_segment()
        return self.made

    def _write_some(self) -> None:
        dice = self.dice
        if self._open and dice.random() < 0.3:
            self._end_transaction(dice.choice(list(self._open)))
            return
        producer = dice.choice((-1, -1, 7, 8, 9))
        self._write_batch(producer, is_open=producer >= 8)

    def _write_batch(self, producer: int, *, is_open: bool) -> None:
        dice, base = self.dice, self.made.end_offset
        records: list[NewRecord] = []
        for index in range(dice.randint(1, 4)):
            key = None if dice.random() < 0.05 else b"k%d" % dice.randrange(6)
            value = None if dice.random() < 0.25 else b"%d" % dice.getrandbits(30)
            row = Row(base + index, key, value, dice.choice(TIMES), base, self._base, producer)
            records.append((row.timestamp, key, value))
            self.made.rows.append(row)
            if is_open:
                self._open.setdefault(producer, []).append(row)
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + len(records)
        self._add(
            build_batch(
                records,
                base_offset=base,
                codec=dice.choice(list(Codec)),
                leader_epoch=0,
                producer_id=producer,
                producer_epoch=0 if producer >= 0 else -1,
                base_sequence=sequence if producer >= 0 else -1,
                transactional=is_open,
            ),
            len(records),
        )

    def _end_transaction(self, producer: int) -> None:
        rows, offset = self._open.pop(producer), self.made.end_offset
        kind = self.dice.choice((ABORT, COMMIT))
        marker = struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0)
        data = build_batch(
            [(NOW, *marker)], base_offset=offset, leader_epoch=0, producer_id=producer,
            producer_epoch=0, control=True, transactional=True,
        )  # fmt: skip
        self._add(data, 1)
        self.made.markers[offset] = (producer, rows[0].offset)
        if kind == ABORT:
            for row in rows:
                row.is_aborted = True
            stable = min((other[0].offset for other in self._open.values()), default=offset + 1)
            self._aborted.append(AbortedTxn(producer, rows[0].offset, offset, stable))

    def _add(self, data: bytes | bytearray, records: int) -> None:
        self._data += data
        self.made.end_offset += records

    def _end_segment(self) -> None:
        if not self._data:
            return
        file = self._env.fs.open(f"{self._path}/{segment_name(self._base, LOG)}", create=True)
        file.write_at(0, bytes(self._data))
        file.sync()
        index = TxnIndex(
            self._env.fs, f"{self._path}/{segment_name(self._base, TXN_INDEX)}", self._base
        )
        for each in self._aborted:
            index.append(each)
        index.sync()
        self._env.fs.sync_dir(self._path)
        self._data.clear()
        self._aborted.clear()
        self._base = self.made.end_offset


def keyed_log(seed: int, env: Env, path: str) -> KeyedLog:
    """Make the directory; what it holds."""
    return _Writer(seed, env, path).run()
