"""Compacts one log: of each key the last record stays, at its offset (semantics.md 8.3, 8.4).

A run notes the last offset of every key in the dirty part, in a map of fixed size; when that is
full, what comes after waits for the next run. Then it copies what stays, from the log's begin up to
there, some neighbouring segments into one, and puts each new segment in the place of the old ones.
The active segment is never touched, nor anything at or above the first uncleanable offset.

Of what is in the tier's store segments are read through its cache, and those that have changed
are written beside the log's files, copied there, and named in the place of the old ones.

A run is a sequence of small slices. Between slices nothing is half done that a crash or a stop
could make harmful; a run that is given up leaves the segments that it has replaced, and no files.
Work that changes the log comes as a call for the holder of the partition's writer gate.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from mmap import mmap
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import CODEC_MASK, CONTROL, HEADER_BYTES
from protocol.records.compact import ENTRY_BYTES, KeyMap, map_keys
from protocol.records.compression import codec_of, inflate
from protocol.records.scan import BatchRow
from storage.cleaner.batch_cleaner import BatchCleaner, CleaningStats, LastOfProducer
from storage.cleaner.cleanable_logs import end_in_store
from storage.cleaner.cleaned_segment import CleanedSegment
from storage.cleaner.cleaned_transactions import CleanedTransactions
from storage.cleaner.segment_swap import SegmentSwap
from storage.env import Env
from storage.errors import CorruptLog, DiskError
from storage.files.layout import SPAN
from storage.index.sparse_index import MAX_RELATIVE_OFFSET
from storage.index.txn_index import AbortedTxn
from storage.log.compaction_state import RemotePart, UnfinishedSwap
from storage.log.log import Log
from storage.retention.cleanability import Verdict
from storage.scan.log_scan import LogScan, ScannedChunk
from storage.segment.segment import Segment


@dataclass(frozen=True, slots=True)
class CleaningMemory:
    """Memory of one run: the map of keys, its load factor, and a piece of a log."""

    map_bytes: int
    load_factor: float
    chunk_bytes: int

    @property
    def map_slots(self) -> int:
        """So many keys would fill the whole map."""
        return max(self.map_bytes // ENTRY_BYTES, 2)


class Slice(NamedTuple):
    """A piece of work that was done. `in_turn`: has to be called, holding the writer gate."""

    bytes_read: int = 0
    bytes_written: int = 0
    in_turn: Callable[[], None] | None = None


class Cleaning:
    """One run over one log. Iterate over `slices`, or close that to give up."""

    def __init__(
        self,
        log: Log,
        verdict: Verdict,
        memory: CleaningMemory,
        env: Env,
        remote: RemotePart | None = None,
    ) -> None:
        """Nothing is read. `verdict` says what is dirty, and what must not be touched.

        `remote`: its part in the tier's store, where there is a tier.
        """
        self.log = log
        self._remote = remote
        self.stats = CleaningStats()
        self.first_dirty = verdict.first_dirty
        """Begin of the log's dirty part, once the run is over."""
        self.replaced: list[Segment] = []
        """Old segments whose files have their `.deleted` names and still have to go."""
        self.map_utilisation = 0.0
        """Share of what the map may hold that keys were noted in."""
        self._fixed_bytes = 0
        self._cleaner: BatchCleaner | None = None
        self._verdict = verdict
        self._memory = memory
        self._env = env
        self._now_ms = env.clock.now_ms()  # as it was believed when the run was decided
        self._segments: tuple[Segment, ...] = ()
        self._end = verdict.first_uncleanable
        self._producers: dict[int, LastOfProducer] = {}

    @property
    def memory_bytes(self) -> int:
        """For the map, for reading, and for what the largest batch unpacks to; from any thread."""
        return self._fixed_bytes + (0 if self._cleaner is None else self._cleaner.room_bytes)

    def slices(self) -> Generator[Slice, None, None]:
        """The whole run. CorruptLog: damaged, all is as before; DiskError."""
        try:
            if self._remote is not None and self.log.snapshot.first_local:
                self._remote.settle()  # else what the log shows may be replaced there already
            yield Slice(in_turn=self._begin)
            yield from self._finish_swap()
            yield from self._run()
        finally:
            state = self.log.compaction
            state.is_running = state.unfinished is not None
            self._let_go()

    def _let_go(self) -> None:
        """Keeps no key and no segment of a run that is over, but those that have to go."""
        self._cleaner, self._fixed_bytes = None, 0
        self._segments, self._producers = (), {}

    def _begin(self) -> None:
        """Takes a consistent view. Until the end no segment leaves the log otherwise."""
        log, verdict = self.log, self._verdict
        while self._remote is not None and (left := self._remote.finish_leaving()):
            self.replaced += left
        log.compaction.is_running = True
        snapshot = log.snapshot
        self._end = max(end_in_store(log, verdict.first_uncleanable), verdict.first_dirty)
        self._segments = tuple(  # whole ones: the clean part may end within one that must stay
            segment
            for segment, following in pairwise(snapshot.segments)
            if following.base_offset <= self._end
        )
        self._producers = {
            producer_id: LastOfProducer(entry.last_offset, entry.epoch)
            for producer_id, entry in log.producers
        }

    def _finish_swap(self) -> Iterator[Slice]:
        """Names that an earlier run could not change."""
        swap = self.log.compaction.unfinished
        if swap is not None:
            self._settle(swap)
            yield Slice()

    def _run(self) -> Iterator[Slice]:
        keys = self._key_map()
        yield from self._map(keys)
        self.map_utilisation = len(keys) / (self._memory.map_slots * self._memory.load_factor)
        cleaner = self._cleaner = BatchCleaner(
            keys,
            self.first_dirty,
            CleanedTransactions(self._aborted(0)),
            self._producers,
            self._now_ms,
            self.log.config.delete_retention_ms,
            self.log.config.max_decompressed_message_bytes,
        )
        cleaner.stats.bytes_read = self.stats.bytes_read
        self.stats = cleaner.stats
        for group in self._groups():
            yield from self._clean(group, cleaner)

    # --- the map ---

    def _key_map(self) -> KeyMap:
        """As large as the dirty part may need, or as is allowed."""
        offsets = max(self._end - self.first_dirty, 1)
        slots = min(
            int(offsets / max(self._memory.load_factor, 0.01)) + 2,
            self._memory.map_slots,
        )
        self._fixed_bytes = slots * ENTRY_BYTES + self._memory.chunk_bytes
        secret = self._env.rng.uint64().to_bytes(8) + self._env.rng.uint64().to_bytes(8)
        return KeyMap(memoryview(mmap(-1, slots * ENTRY_BYTES)), self._memory.load_factor, secret)

    def _map(self, keys: KeyMap) -> Iterator[Slice]:
        """Note the keys from the first dirty offset on, and move that to where it ends."""
        first, end = self.first_dirty, self._end
        transactions = CleanedTransactions(self._aborted(first))
        for segment, following in zip(self._segments, self._ends(), strict=True):
            if following <= first:
                continue
            for chunk in self._chunks(segment):
                for row in chunk.rows:
                    stopped = self._map_batch(keys, chunk.data, row, first, transactions, segment)
                    if stopped >= 0:
                        self.first_dirty = stopped
                        return
                yield self._read(len(chunk.data))
        self.first_dirty = max(first, end)

    def _map_batch(  # noqa: PLR0917 - private, called by position
        self,
        keys: KeyMap,
        data: memoryview,
        row: BatchRow,
        first: int,
        transactions: CleanedTransactions,
        segment: Segment,
    ) -> int:
        """Maps the keys of a batch; the offset where the map was full, or -1."""
        batch = data[row[0] : row[0] + row[5]]
        if transactions.may_go(row, batch) or row[7] & CONTROL or row[2] < first:
            return -1
        try:
            payload = inflate(
                codec_of(row[7] & CODEC_MASK),
                batch[HEADER_BYTES:],
                limit_bytes=self.log.config.max_decompressed_message_bytes,
            )
            return map_keys(keys, payload, row[6], row[1], first)
        except DecodeError as error:
            raise self._damage(segment, row, error) from error

    # --- the copy ---

    def _clean(self, group: Sequence[Segment], cleaner: BatchCleaner) -> Iterator[Slice]:
        """Make one segment of some neighbours and put it in their place."""
        cleaned = CleanedSegment(group, self.log.search.lookup[1], self.log.files)
        clean = self._clean_here if group[0].away is None else self._clean_away
        yield from clean(group, cleaner, cleaned)
        yield Slice()

    def _clean_away(
        self, group: Sequence[Segment], cleaner: BatchCleaner, cleaned: CleanedSegment
    ) -> Iterator[Slice]:
        """The same in the tier's store: its files are here only until they are there.

        A segment that would be the same is left there.
        """
        assert self._remote is not None, "a segment is in a store, and there is none"
        try:
            new = yield from self._write(group, cleaner, cleaned)
            if not cleaned.is_as_before:
                self._remote.replace(group, new)
                yield Slice(0, self._written(cleaned), in_turn=self._remote.show)
        finally:
            self._discard(cleaned)

    def _write(
        self, group: Sequence[Segment], cleaner: BatchCleaner, cleaned: CleanedSegment
    ) -> Generator[Slice, None, Segment]:
        indexes, rules = self.log.search.lookup
        for segment in group:
            zones = indexes.of(segment, segment.size_bytes, rules).zones
            cleaned.begin_source(list(zones.zones()), segment.mtime_ms)
            for chunk in self._chunks(segment):
                self._clean_chunk(segment, chunk, cleaner, cleaned)
                yield self._read(len(chunk.data), self._written(cleaned))
        new = cleaned.finish(cleaner.transactions.kept)
        cleaner.transactions.kept.clear()
        return new

    def _clean_here(
        self, group: Sequence[Segment], cleaner: BatchCleaner, cleaned: CleanedSegment
    ) -> Iterator[Slice]:
        swap: SegmentSwap | None = None
        try:
            new = yield from self._write(group, cleaner, cleaned)
            swap = SegmentSwap(group, new)
            swap.prepare()
            yield Slice(0, self._written(cleaned), in_turn=lambda: self._publish(swap))
        except BaseException:
            if swap is None or self.log.compaction.unfinished is not swap:
                self._discard(cleaned)
            else:
                with suppress(DiskError):  # it counts already: the next run or start finishes it
                    self._settle(swap)
            raise
        self._settle(swap)

    def _clean_chunk(
        self,
        segment: Segment,
        chunk: ScannedChunk,
        cleaner: BatchCleaner,
        cleaned: CleanedSegment,
    ) -> None:
        data, begin = chunk.data, chunk.position
        row: BatchRow | None = None
        try:
            for row in chunk.rows:
                cleaned.take(data, begin, row, cleaner.clean(data, row))
        except DecodeError as error:
            assert row is not None
            raise self._damage(segment, row, error) from error
        cleaned.compare(data[: row[0] + row[5]] if row is not None else b"")
        cleaned.flush()

    def _publish(self, swap: SegmentSwap) -> None:
        swap.publish(self.log)
        self.log.compaction.unfinished = swap

    def _settle(self, swap: UnfinishedSwap) -> None:
        swap.finish()
        self.log.compaction.unfinished = None
        self.replaced += swap.old

    def _discard(self, cleaned: CleanedSegment) -> None:
        """Removes what was written. If that fails the log is left alone until it is opened
        again.
        """
        try:
            cleaned.discard()
        except DiskError:
            self.log.compaction.is_stuck = True

    def _groups(self) -> Iterator[list[Segment]]:
        """Neighbours that fit into one segment together, up to the end of what was mapped."""
        config, group = self.log.config, list[Segment]()
        size = entries = 0
        for segment, following in zip(self._segments, self._ends(), strict=True):
            if segment.base_offset >= self.first_dirty:
                break
            more = self._index_bytes(segment)
            fits = group and (
                (segment.away is None) == (group[0].away is None)
                and size + segment.size_bytes <= config.segment_bytes
                and entries + more <= config.segment_index_bytes
                and following - 1 - group[0].base_offset <= MAX_RELATIVE_OFFSET
            )
            if group and not fits:
                yield group
                group, size, entries = [], 0, 0
            group.append(segment)
            size += segment.size_bytes
            entries += more
        if group:
            yield group

    # --- what both passes need ---

    def _ends(self) -> list[int]:
        """End of each segment: the base of the next one."""
        bases = [segment.base_offset for segment in self._segments]
        return [*bases[1:], self._end] if bases else []

    def _index_bytes(self, segment: Segment) -> int:
        indexes, rules = self.log.search.lookup
        offsets, times, _ = indexes.of(segment, segment.size_bytes, rules)
        return max(offsets.size_bytes, times.size_bytes)

    def _chunks(self, segment: Segment) -> Iterator[ScannedChunk]:
        """The segment's batches, each with its CRC checked. CorruptLog where it is damaged."""
        scan = LogScan(
            segment.file(),
            limit=segment.size_bytes,
            next_offset=segment.base_offset,
            below=segment.base_offset + SPAN,
            chunk_bytes=self._memory.chunk_bytes,
        )
        yield from scan.chunks()
        if scan.fault:
            raise CorruptLog(segment.file().path, f"the batch at {scan.end_position}: {scan.fault}")

    def _aborted(self, offset: int) -> list[AbortedTxn]:
        return self.log.search.aborted(offset, self._end)

    def _read(self, size: int, written: int = 0) -> Slice:
        self.stats.bytes_read += size
        return Slice(size, written)

    def _written(self, cleaned: CleanedSegment) -> int:
        """Bytes that were written since this was asked last."""
        written, cleaned.bytes_written = cleaned.bytes_written, 0
        self.stats.bytes_written += written
        return written

    def _damage(self, segment: Segment, row: BatchRow, error: DecodeError) -> CorruptLog:
        return CorruptLog(segment.file().path, f"the batch of offset {row[1]}: {error}")
