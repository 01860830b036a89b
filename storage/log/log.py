"""One partition's log as time passes: its start moves up, segments end, are replaced and go.

What it is as it is written and read, and the rules, are in `storage.log.written_log`.
"""

from collections.abc import Sequence
from contextlib import suppress

from protocol.errors import ErrorCode, KafkaError
from storage.errors import NoSpace
from storage.log.written_log import WrittenLog
from storage.segment.log_snapshot import AppendResult, TimestampOffset
from storage.segment.removal import STEP_SEGMENTS, RemovalStep, rename_away, wholly_before
from storage.segment.segment import Segment
from storage.validation.batch_rules import InvalidRecordError

__all__ = ["AppendResult", "InvalidRecordError", "Log", "TimestampOffset"]


class Log(WrittenLog):
    """The log of one partition."""

    __slots__ = ()

    def remove_segments(self, start_offset: int, *, all_go: bool = False) -> RemovalStep:
        """Raise the start offset, durably, and take segments before it out of the log.

        Some at a time: call it again while `has_more`. `all_go`: the active one goes as well, so
        a new one begins first, if nothing was appended after `start_offset` was decided. Holds the
        writer gate and blocks: run it on a lane. DiskError: what was done stays done.
        """
        with self._change():
            if not self.takes_changes or self.compaction.is_running:
                return RemovalStep((), self._start_offset, has_more=False)
            if all_go and self._appender.end_offset == start_offset:
                with suppress(NoSpace):  # the others make room for it
                    self._appender.roll()
            at_most = self._raise_start(min(start_offset, self.snapshot.high_watermark))
            before = wholly_before(self._appender.segments, self._start_offset)
            self._take_out(leaving := before[:at_most])
        return RemovalStep(leaving, self._start_offset, has_more=len(before) > len(leaving))

    def _take_out(self, leaving: Sequence[Segment], *, sync: bool = True) -> None:
        """The oldest local segments leave the directory, durably if asked; readers see it."""
        if leaving:
            rename_away(leaving)
            if sync:
                self.files.fs.sync_dir(self.files.path)
            self._appender.drop_segments(len(leaving))
            self.compaction.forget_segments()
        self._publish()

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """One closed segment counts for several from now on; holding the writer gate.

        LogOffline when it is out of service: nothing has changed.
        """
        with self._change():
            if not self.takes_changes:
                raise self._offline()
            self._appender.replace_segments(old, new)
            self._publish()

    # --- the tier's store ---

    def show_uploaded(self, segments: tuple[Segment, ...], end_offset: int) -> None:
        """All segments that the store has, in order; they count where the directory has none.

        Holds the writer gate.
        """
        with self._change():
            for gone in set(self.tiers.uploaded).difference(segments):
                self.search.forget(gone)
            self.tiers.show(segments, end_offset)
            self.tiers.join(self._appender.segments, self._start_offset)
            self._publish()

    def drop_local(self, below: int) -> tuple[Segment, ...]:
        """Take segments that end at or before `below` out of the directory; their files go later.

        The store has them, and `horolog-remote` says so, durably. Holds the writer gate and
        blocks. DiskError: what was done stays done.
        """
        with self._change():
            if not self.takes_changes or self.compaction.is_running:
                return ()
            below = min(below, self.tiers.uploaded_end)
            leaving = wholly_before(self._appender.segments, below)[:STEP_SEGMENTS]
            self._take_out(leaving, sync=False)  # a start would, too
        return leaving

    def roll(self) -> bool:
        """End the active segment, unless it is empty; whether that happened.

        Holds the writer gate and blocks: run it on a lane. The closed segment's files become
        durable with the next `sync`. DiskError, CorruptIndex, CorruptLog: nothing has changed.
        """
        with self._change():
            if not self.takes_changes:
                return False
            rolled = self._appender.roll()
            self._publish()
        return rolled

    def _raise_start(self, offset: int) -> int:
        """Move the start offset up, durably; how many segments may go in one step.

        On a full disk it cannot be made durable: then one at a time, which leaves no hole either.
        """
        is_news = offset > self._start_offset or not self._start_is_durable
        try:
            self._move_start(offset)
            if is_news and self.epochs.start_at(self._start_offset):
                self.epochs.save()
        except NoSpace:
            return 1
        return STEP_SEGMENTS

    def _move_start(self, offset: int) -> None:
        """Raise the start offset to `offset`; durable when it returns, also if it failed before."""
        if offset > self._start_offset:
            self._start_offset, self._start_is_durable = offset, False
            self.producers.log_start_offset = offset
            self.tiers.join(self._appender.segments, self._start_offset)
            self._publish()
        if not self._start_is_durable:
            self._on_start_moved()
            self._start_is_durable = True

    def delete_records(self, before_offset: int) -> int:
        """Make `before_offset` (-1: the high watermark) the log's first offset; the new one.

        Durable when it returns. KafkaError OFFSET_OUT_OF_RANGE (1) above the high watermark.
        LogOffline when it is closed. Blocks: run it on a lane.
        """
        watermark = self.snapshot.high_watermark
        before_offset = watermark if before_offset == -1 else before_offset
        if not 0 <= before_offset <= watermark:
            reason = f"Offset {before_offset} is above the high watermark {watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        with self._change():
            if self.is_closed:
                raise self._offline()
            self._move_start(before_offset)
        return self._start_offset

    def sync_before_close(self) -> None:
        """The first step of `close`: what is written becomes durable, if it is not. DiskError."""
        closed = self._appender.segments[:-1]  # a roll by the timer leaves no dirty bytes
        if (
            self._appender.trim()
            or self.durability.dirty_bytes
            or not all(each.synced for each in closed)
        ):
            self.mark_durable(self.sync())

    def write_before_close(self) -> None:
        """The second step: what is in memory goes to files that are not synced yet. DiskError."""
        self._appender.write_out()

    def close(self) -> None:
        """Make durable what a start believes, let go of the files. DiskError: a start recovers."""
        if self.is_closed:
            return
        try:
            if self.durability.failed is None:
                self.sync_before_close()
                self.write_before_close()
                self._appender.sync_out()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files without writing: the log is deleted, or its disk is sick.

        Waits for what is being written or synced; nothing is after it, so another log may be made
        of the files. Blocks.
        """
        self.is_closed = True
        with self._syncs, self._gate:
            self.compaction.forget_segments()
            self.files.forget_all()
            for segment in self.snapshot.segments:
                self.search.forget(segment)
            self._appender.abandon()
