"""The life of one partition, lived by the storage engine and by a plain list.

`LogHistory` does each thing to both: appends, deletions, settings, time, restarts, kills, power
cuts. An answer that differs is an AssertionError.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from config.topic import TopicConfig
from protocol.errors import KafkaError
from protocol.records.builder import build_batch, recompress
from protocol.records.compression import Codec
from protocol.records.record import read_records
from storage.log.lifecycle import learn_times, plan_retention, roll_if_due
from storage.log.log import AppendResult, InvalidRecordError
from storage.validation.checked_batch import MistimedBatch
from storage.validation.scratch import Scratch
from storage.validation.timestamp_policy import (
    CLAIMED_TIMESTAMP,
    ORIGIN_OFFSET,
    Origin,
    TooLarge,
    rewritten,
)
from tests.support.disk.simdisk import SimFileSystem
from tests.support.histories.list_log import NO_TIME, Batch
from tests.support.histories.list_producers import Sent
from tests.support.histories.log_twins import PATH, LogTwins, header_number, same
from tests.support.records.logs import make_durable

RECORD_LIST_TOO_LARGE = 18
HEADER_BYTES = 300  # of a record that is quarantined, at the most
ORIGIN = Origin("t", 0, "client", "192.0.2.1")

Identity = tuple[int, int, int]


class _Sent(NamedTuple):
    """A batch of a client."""

    times: list[int]
    values: list[bytes]
    data: bytearray
    codec: Codec
    identity: Identity | None
    acks_all: bool


class LogHistory(LogTwins):
    """One partition, twice."""

    def append(
        self,
        times: Sequence[int],
        *,
        codec: Codec = Codec.NONE,
        size: int = 10,
        keyless: Sequence[int] = (),
        identity: Identity | None = None,
        acks_all: bool = False,
    ) -> None:
        """A client sends one batch; `keyless` are the records without key."""
        values = [self._value(size) for _ in times]
        data = self._batch(times, values, codec, set(keyless), identity)
        sent = _Sent(list(times), values, data, codec, identity, acks_all)
        model, now_ms = self.model, self.clock.now_ms()
        code, named = model.refused(sent.times, set(keyless), now_ms)
        if code:
            self._refused(data, code, named)
        elif model.out_of_bounds(sent.times, now_ms) and model.has_remedy:
            self._append_rewritten(sent)
        elif self._stored_bytes(data, codec) > self.config.segment_bytes:
            self._refused(data, RECORD_LIST_TOO_LARGE)
        else:
            self._append_as_it_is(sent)

    def _append_as_it_is(self, sent: "_Sent") -> None:
        batch = self._make_room(sent, self._stored_bytes(sent.data, sent.codec))
        if self._repeats(sent):
            return
        result = self.log.append(memoryview(sent.data), acks_all=sent.acks_all, leader_epoch=0)
        self._stored(sent, batch, result)

    def _append_rewritten(self, sent: "_Sent") -> None:
        """As a partition of the broker does: the rewrite first, then the batch that came of it."""
        if self._repeats(sent):
            return
        try:
            self.log.append(memoryview(sent.data), acks_all=sent.acks_all, leader_epoch=0)
        except MistimedBatch as mistimed:
            try:
                cured = rewritten(mistimed, ORIGIN, Scratch())
            except TooLarge:  # uncompressed records that fit no segment once they have headers
                largest = len(sent.data) + HEADER_BYTES * len(sent.times)
                assert largest > self.config.segment_bytes
                return
        else:
            raise AssertionError("stored as it is, though some times are out of bounds")
        batch = self._make_room(sent, len(cured.batch.records))
        result = self.log.append(cured.batch, acks_all=sent.acks_all, leader_epoch=0)
        self._stored(sent, batch, result)
        set_aside = [] if cured.aside is None else read_records(cured.aside.records)
        now_ms = self.clock.now_ms()
        bad = self.model.out_of_bounds(sent.times, now_ms)
        gone = sorted(bad) if len(batch.rows) < len(sent.times) else []
        same(
            [(r.timestamp, r.value, header_number(r, CLAIMED_TIMESTAMP)) for r in set_aside],
            [(now_ms, sent.values[index], sent.times[index]) for index in gone],
            "quarantined records",
        )
        same(
            [header_number(record, ORIGIN_OFFSET) for record in set_aside],
            [batch.base_offset + index for index in gone],
            "offsets of quarantined records",
        )

    def _make_room(self, sent: "_Sent", size_bytes: int) -> Batch:
        now_ms = self.clock.now_ms()
        batch = self.model.batch_of(sent.times, sent.values, now_ms)
        batch.size_bytes = size_bytes
        if self.model.must_roll(batch, now_ms):
            self.model.roll()
            self._rolled = True
        return batch

    def _repeats(self, sent: "_Sent") -> bool:
        """True when the batch is refused for its sequence, or one that is stored already."""
        repeated = sent.identity and self.producers.judge(sent.identity, len(sent.times))
        if repeated is None:
            return False
        if isinstance(repeated, int):
            self._refused(sent.data, repeated)
        else:
            result = self.log.append(memoryview(sent.data), acks_all=False, leader_epoch=0)
            same(result.duplicate, True, "duplicate")
            found = result.base_offset, result.log_append_time_ms
            same(found, (repeated.base_offset, repeated.newest), "the batch repeated")
        self._took_room()
        return True

    def _took_room(self) -> None:
        if self._rolled:
            self._new_part()
        self._rolled = False

    def _refused(self, data: bytearray, code: int, named: Sequence[int] = ()) -> None:
        end = self.log.snapshot.log_end_offset
        try:
            self.log.append(memoryview(data), acks_all=False, leader_epoch=0)
        except KafkaError as error:
            errors = error.record_errors if isinstance(error, InvalidRecordError) else []
            same(int(error.code), code, "error")
            same([index for index, _ in errors], list(named), "bad records")
        else:
            raise AssertionError(f"accepted, though error {code} was due")
        same(self.log.snapshot.log_end_offset, end, "log end after a refusal")

    def _stored(self, sent: "_Sent", batch: Batch, result: AppendResult) -> None:
        model, now_ms = self.model, self.clock.now_ms()
        offsets = result.base_offset, result.last_offset
        same(offsets, (batch.base_offset, batch.last_offset), "offsets")
        same(result.log_append_time_ms, now_ms if model.is_stamped else NO_TIME, "append time")
        same(result.duplicate, False, "duplicate")
        model.append(batch, now_ms)
        self._took_room()
        if sent.acks_all:
            model.hidden.append(batch.base_offset)
        if sent.identity is not None:
            stored = Sent(sent.identity[2], len(sent.times), batch.base_offset, batch.newest)
            self.producers.store(sent.identity, stored)

    def sync(self) -> None:
        """The fsync thread's round."""
        make_durable(self.log)
        self.model.hidden.clear()

    def checkpoint(self) -> None:
        """Recovery points and start offsets go to the disk."""
        self.manager.checkpoint()
        self.checkpointed = self.log.durability.recovery_point

    def delete_records(self, before: int) -> None:
        """DeleteRecords."""
        expected = self.model.delete_records(before)
        try:
            assert self.log.delete_records(before) == expected
        except KafkaError:
            assert expected is None

    def alter(self, **settings: Any) -> None:
        """The topic's settings change."""
        self.settings |= settings
        self.config = self.model.config = TopicConfig(**self.settings)
        self.log.reconfigure(self.config)

    def wait(self, ms: int) -> None:
        """Time passes."""
        self.clock.advance(ms)
        self.manager.remove_deleted()

    def step_clock(self, ms: int) -> None:
        """Sets the clock."""
        self.clock.step(ms)
        self.stepped_ms += ms

    def retain(self) -> None:
        """Retention looks at the log."""
        is_held, now_ms = self._held(), self.clock.now_ms()
        while not learn_times(self.log, 3):
            continue
        plan = plan_retention(self.log, now_ms, is_held=is_held)
        self._check_deadline(plan, is_held=is_held)
        parts = len(self.model.parts)
        fates = self.model.drop_old(now_ms, is_held=is_held)
        decided = [(each.base_offset, each.goes, each.reason) for each in plan.decisions]
        same(decided, [(fate.base, fate.goes, fate.reason) for fate in fates], "retention")
        while self.manager.remove_segments(
            self.log, plan.start_offset, all_go=plan.rolls_first
        ).has_more:
            continue
        if all(fate.goes for fate in fates):
            self._new_part()
        assert len(self.log.snapshot.segments) <= parts

    def tick(self) -> None:
        """The roll timer looks at the log."""
        now_ms = self.clock.now_ms()
        if self._held():
            return
        is_due = self.model.timer_is_due(now_ms)
        same(roll_if_due(self.log, now_ms), is_due, "timer")
        if is_due:
            self.model.roll()
            self._new_part()

    def restart(self) -> None:
        """A clean stop and a start."""
        assert self.manager.close()
        self._settle_disk()
        self.model.parts[-1].offer_last_time(self.model.end, self.config)
        self._check_index_files()
        self._start()
        self._started(scanned_from=None)

    def kill(self) -> None:
        """A kill -9 and a start: the page cache stays."""
        self._recover(self.fs.after_kill(), was_cut=False)

    def cut_power(self, seed: int) -> None:
        """A power cut and a start: what was not synced may be gone.

        What a clean stop wrote is on the disk by then. On a compacted topic recovery takes a hole
        for the cleaner's work, so nothing is unsynced there.
        """
        if "compact" in self.config.cleanup_policy:
            self.sync()
        self._recover(self.fs.after_crash(seed), was_cut=True)

    def _recover(self, disk: SimFileSystem, *, was_cut: bool) -> None:
        promised = self.log.durable_offset if was_cut else self.model.end
        self.fs = disk
        self._start()
        found = self.log.snapshot
        self.is_over = self.log.corruption is not None
        if self.is_over:
            assert was_cut
            return
        assert promised <= found.log_end_offset <= self.model.end
        self._forget_from(found.log_end_offset)
        self._started(scanned_from=self.checkpointed)
        for part in self.model.parts:
            self._learn_index(part)
        self._check_index_files()

    def _settle_disk(self) -> None:
        """Some time after a clean stop everything is on the disk."""
        for entry in self.fs.list_dir(PATH):
            self.fs.open(f"{PATH}/{entry.name}").sync()
        self.fs.sync_dir(PATH)

    def _stored_bytes(self, data: bytearray, codec: Codec) -> int:
        """The size of a batch once it is in the codec that the topic asks for."""
        wanted, config = self.config.compression_type, self.config
        target = Codec.NONE if wanted == "uncompressed" else codec
        level = None
        if wanted not in {"producer", "uncompressed"}:
            target = Codec[wanted.upper()]
            level = getattr(config, f"compression_{wanted}_level", None)
        if target == codec:
            return len(data)
        return len(recompress(memoryview(data), target, level=level))

    def _value(self, size: int) -> bytes:
        self.count += 1
        return b"%d:" % self.count + bytes(size)

    def _batch(
        self,
        times: Sequence[int],
        values: Sequence[bytes],
        codec: Codec,
        keyless: set[int],
        identity: Identity | None,
    ) -> bytearray:
        rows = [
            (at, None if index in keyless else b"k%d" % index, values[index])
            for index, at in enumerate(times)
        ]
        if identity is None:
            return build_batch(rows, codec=codec)
        producer_id, epoch, first = identity
        return build_batch(
            rows,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=first,
        )
