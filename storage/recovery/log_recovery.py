"""Recovery of a log after an unclean stop: scan, judge the end, cut or keep, rebuild, make durable.

Every segment from that of the recovery point on is read whole, every batch with its CRC;
offset, time and transaction index and producers are made from that, zone rows kept where they can
be proved. What is scanned above the recovery point comes from the disk, never from an old page
cache (`read_back`). Where the good part ends, one of two things is true (operations B3.4):

- a torn tail: nothing sound follows, or bytes lack there that never reached the disk, as when a
  power cut came. The tail and all later segments were never acknowledged as durable: they
  go.
- damage: sound batches follow, or the damage is below the recovery point. The file is kept
  as it is, the log ends below the damage, takes no writes, and says so.

Recovery may itself be cut off at any call: doing it again gives the same log.
"""

from typing import NamedTuple

from storage.env import FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.files.layout import SEGMENT_SUFFIXES, SPAN
from storage.old_formats.format_upgrade import has_old_message, is_old_message
from storage.producers.leader_epochs import LeaderEpochs
from storage.producers.producer_state import ProducerStates
from storage.producers.replay import replay_rows
from storage.recovery.read_back import read_back
from storage.scan.log_scan import LogScan, ScannedChunk
from storage.segment.index_rebuild import IndexRebuild, write_indexes
from storage.segment.segment import IndexRules, Segment
from storage.segment.segments import index_of
from storage.segment.times import last_arrival_of
from storage.segment.verified_ranges import SOUND

OLD_SEARCH_BYTES = 4 * 1024 * 1024  # how far behind a fault old messages are looked for


class Recovered(NamedTuple):
    """The sound part of a log, durable by now."""

    segments: tuple[Segment, ...]
    end_offset: int
    cut_bytes: int
    """Bytes of torn tails that were cut, and of segments that went with them."""
    corruption: CorruptLog | None


class LogRecovery:
    """One recovery of one log."""

    def __init__(
        self,
        segments: tuple[Segment, ...],
        scan_from: int,
        rules: IndexRules,
        *,
        synced_below: int,
        durable_below: int,
        gaps_below: int,
    ) -> None:
        """Scan from the segment that holds the offset `scan_from`.

        Bytes below the offset `synced_below` were synced without an error, by the checkpoint. Bytes
        below the offset `durable_below` were on the disk, so damage to them is no torn write.
        Before segments up to `gaps_below` offsets may lack, since compaction removes records
        (Kafka's also the last ones of a segment; ours leaves their batch, empty).
        """
        self._segments = segments
        self._scan_from = scan_from
        self._synced_below = synced_below
        self._durable_below = durable_below
        self._rules = rules
        self._gaps_below = gaps_below
        self._kept: list[Segment] = []
        self._end_offset = 0
        self._cut_bytes = 0
        self._corruption: CorruptLog | None = None

    def run(self, producers: ProducerStates, epochs: LeaderEpochs) -> Recovered:
        """Scan, cut and rebuild; `producers` and `epochs` take in what is scanned. DiskError."""
        first = index_of(self._segments, self._scan_from)
        self._kept = list(self._segments[:first])
        for before in reversed(self._segments[:first]):
            self._segments[first].arrival_floor_ms = last_arrival_of(before, self._rules)
            if self._segments[first].arrival_floor_ms:
                break  # else its rows were lost with a crash
        for index in range(first, len(self._segments)):
            segment = self._segments[index]
            if index > first and self._is_behind_a_gap(segment):
                self._remove_from(index)
                break
            if not self._take(index, producers, epochs):
                break
        for segment in self._kept[first:]:
            segment.file().sync()
            _write_out(segment)
        files = self._segments[0].files
        files.fs.sync_dir(files.path)
        return Recovered(tuple(self._kept), self._end_offset, self._cut_bytes, self._corruption)

    def _take(self, index: int, producers: ProducerStates, epochs: LeaderEpochs) -> bool:
        """Scan one segment; whether the log goes on behind it."""
        segment = self._segments[index]
        following = self._segments[index + 1 : index + 2]
        read_back(segment, self._synced_below)
        base, bases = segment.base_offset, [each.base_offset for each in following]
        scan = LogScan(
            segment.file(),
            limit=segment.size_bytes,
            next_offset=base,
            below=min([base + SPAN, *bases]),
        )
        rebuild = IndexRebuild(segment, self._rules)
        segment.aborted.reset()

        def replay(chunk: ScannedChunk) -> None:
            for aborted in replay_rows(chunk.rows, chunk.data, producers, epochs):
                segment.aborted.append(aborted)

        rebuild.read(scan, replay)
        self._kept.append(segment)
        self._end_offset = scan.next_offset
        goes_on = True
        if scan.fault:
            goes_on = self._settle_fault(scan, index)
        segment.size_bytes = scan.end_position
        segment.sound = SOUND
        indexes = rebuild.end(scan, closed=True)
        rebuild.tell(scan.end_position)
        indexes.zones.distrust_file()
        segment.indexes = indexes
        for each in following:
            each.arrival_floor_ms = indexes.zones.last_arrival_ms
        return goes_on

    def _settle_fault(self, scan: LogScan, index: int) -> bool:
        """Cut a torn tail, keep damage; whether the log goes on in the next segment.

        Behind a segment that has all up to the next one are only bytes of a write that was refused.
        """
        segment, following = self._segments[index], self._segments[index + 1 :]
        if following and scan.next_offset == following[0].base_offset:
            self._cut(segment, scan.end_position)
            return True
        later = any(other.size_bytes for other in following)
        rest = _rest_of(segment, scan)
        is_damage = (
            scan.next_offset < self._durable_below
            or is_old_message(rest)
            or (not scan.lost_bytes() and (later or _goes_on_behind(scan, rest)))
        )
        if is_damage:
            self._corruption = CorruptLog(
                segment.file().path,
                f"the batch at {scan.end_position}, offset {scan.next_offset}, is damaged "
                f"({scan.fault}), and sound ones follow or were known to be on the disk: kept as "
                "it is, not written to any more",
            )
            return False
        self._remove_from(index + 1)
        self._cut(segment, scan.end_position)
        return False

    def _cut(self, segment: Segment, size_bytes: int) -> None:
        self._cut_bytes += segment.size_bytes - size_bytes
        segment.file().truncate(size_bytes)

    def _is_behind_a_gap(self, segment: Segment) -> bool:
        """True for a segment after lost offsets, which was never acknowledged as durable."""
        return (
            segment.base_offset > self._end_offset
            and self._end_offset >= self._durable_below
            and segment.base_offset > self._gaps_below
        )

    def _remove_from(self, index: int) -> None:
        for segment in reversed(self._segments[index:]):
            self._cut_bytes += segment.size_bytes
            remove_segment(segment.files.fs, segment)


def _goes_on_behind(scan: LogScan, rest: bytes) -> bool:
    """True when a sound batch, or message of format 0 or 1, comes behind the faulty one.

    Of a torn batch this says nothing: a client may have put either into a value of it.
    """
    return scan.good_batch_behind() is not None or has_old_message(rest, scan.next_offset)


def _rest_of(segment: Segment, scan: LogScan) -> bytes:
    """Bytes behind the good part in which messages of format 0 and 1 are looked for.

    A segment that begins with such messages has been rewritten before (`old_segments`).
    """
    size = min(OLD_SEARCH_BYTES, segment.size_bytes - scan.end_position)
    return segment.file().read_at(scan.end_position, size)


def _write_out(segment: Segment) -> None:
    """The rebuilt indexes go to their files, durably, and out of memory."""
    indexes, segment.indexes = segment.indexes, None
    segment.verified = False
    if indexes is not None:
        write_indexes(indexes)
        for index in indexes:
            index.sync()
    segment.aborted.sync()


def remove_segment(fs: FileSystem, segment: Segment) -> None:
    """Remove a segment's files, its `.log` last, so that a crash leaves no orphan behind it."""
    for suffix in reversed(SEGMENT_SUFFIXES):
        path = segment.path_of(suffix)
        segment.files.forget(path)
        try:
            fs.remove(path)
        except FileMissing:
            continue
