"""Invariants of an `InterleavedWorld`: at each change of threads, for readers, and in the end."""

from protocol.errors import ErrorCode, KafkaError
from protocol.records.scan import scan_batches
from storage.errors import StorageError
from storage.files.layout import LOG
from storage.segment.log_snapshot import LogSnapshot
from tests.support.disk.simdisk import SimFileSystem
from tests.support.threads.interleaved_world import NOW, TOKEN, InterleavedWorld


class Oracle:
    """Looks at a world; every broken promise is an AssertionError."""

    def __init__(self, world: InterleavedWorld) -> None:
        self._world = world
        self._log = world.log
        self._last = world.log.snapshot
        self.cuts: list[tuple[SimFileSystem, dict[int, bytes], int]] = []

    # --- at each change ---

    def look(self) -> None:
        """Nothing that readers go by runs back; no promised batch shows before it is durable."""
        last, now = self._last, self._log.snapshot
        if now is last:
            return
        self._last = now
        for name in ("log_start_offset", "log_end_offset", "high_watermark", "total_bytes"):
            before, after = getattr(last, name), getattr(now, name)
            assert before <= after, f"{name} ran back from {before} to {after}"
        assert last.last_stable_offset <= max(now.last_stable_offset, now.log_start_offset), (
            "the last stable offset ran back"
        )
        assert now.high_watermark <= now.log_end_offset
        assert now.last_stable_offset <= now.high_watermark
        if now.high_watermark > last.high_watermark:
            self._judge_shown(last.high_watermark, now)

    def _judge_shown(self, begin: int, now: LogSnapshot) -> None:
        fs = self._world.fs
        for segment in now.segments:
            path = segment.path_of(LOG)
            if not fs.exists(path):
                continue
            cached, durable = fs.read_bytes(path), fs.durable_bytes(path)
            for row in scan_batches(memoryview(cached)).batches:
                data = cached[row[0] : row[0] + row[5]]
                if begin <= row[1] < now.high_watermark and self._is_promised(data):
                    assert durable[row[0] : row[0] + row[5]] == data, (
                        f"offset {row[1]} is shown and not durable"
                    )

    def _is_promised(self, batch: bytes) -> bool:
        return any(token in self._world.promised for token in TOKEN.findall(batch))

    def cut(self, seed: int) -> None:
        """The power goes now; what was answered until now is looked for after the run."""
        world = self._world
        self.cuts.append(
            (
                world.fs.after_crash(seed),
                dict(world.acknowledged),
                self._log.snapshot.log_start_offset,
            )
        )

    # --- readers, on any thread ---

    def read(self) -> None:
        """All that is shown, and what of it is aborted."""
        log, world = self._log, self._world
        expected = set(world.aborted)
        snapshot = log.snapshot
        try:
            self._read_all(snapshot)
            stable = snapshot.last_stable_offset
            found = {
                (each.producer_id, each.first_offset, each.last_offset)
                for each in log.search.aborted(snapshot.log_start_offset, stable)
            }
        except StorageError:
            if world.may_fail:
                return
            raise
        except KafkaError as error:
            if error.code == ErrorCode.OFFSET_OUT_OF_RANGE or world.may_fail:
                return
            raise
        for each in expected:
            if each[2] < stable and each[1] >= log.snapshot.log_start_offset:
                assert each in found, f"readers do not get the aborted {each}"

    def _read_all(self, snapshot: LogSnapshot) -> None:
        at = snapshot.log_start_offset
        while at < snapshot.high_watermark:
            piece = self._log.read(at, 300, up_to=snapshot.high_watermark, min_one_batch=True)
            data = piece.read()
            rows = scan_batches(memoryview(data)).batches
            assert rows, f"nothing at {at}"
            for row in rows:
                assert row[1] <= at or row[1] == at, f"a hole at {at}"
                batch = data[row[0] : row[0] + row[5]]
                assert self._world.seen.setdefault(row[1], batch) == batch, f"{row[1]} has changed"
                at = row[2] + 1

    def search(self, time: int) -> None:
        """The record of that time, if it is known to be shown."""
        world = self._world
        offset = world.times.get(time)
        snapshot = self._log.snapshot
        if offset is None or not snapshot.log_start_offset <= offset < snapshot.high_watermark:
            return
        found = self._log.search.first_at_or_after(time, below=snapshot.high_watermark)
        if offset >= self._log.snapshot.log_start_offset:
            assert found is not None, f"no record is as late as {time - NOW}"
            assert found.offset == offset, f"{found.offset} is found for {time - NOW}, not {offset}"

    # --- in the end ---

    def judge(self) -> None:
        """Everybody was answered; what was answered is there, after a power cut, too."""
        world = self._world
        for error in world.errors:
            raise AssertionError(f"{type(error).__name__}: {error}") from error
        assert not world.waiting, f"{len(world.waiting)} requests were never answered"
        self.look()
        self.read()
        for time in world.times:
            self.search(time)
        snapshot = self._log.snapshot
        if self._log.failed is None:
            assert snapshot.high_watermark == snapshot.log_end_offset, "something stays hidden"
            assert snapshot.last_stable_offset == self._stable(snapshot), "readers are stopped"
        self.cut(snapshot.log_end_offset)
        for disk, acknowledged, start in self.cuts:
            self._judge_cut(disk, acknowledged, start)

    def _stable(self, snapshot: LogSnapshot) -> int:
        first = min([*self._world.open.values(), snapshot.high_watermark])
        return max(first, snapshot.log_start_offset)

    def _judge_cut(self, disk: SimFileSystem, acknowledged: dict[int, bytes], start: int) -> None:
        log = self._world.started(disk).logs["t", 0]
        found = {}
        for segment in log.snapshot.segments:
            data = disk.read_bytes(segment.path_of(LOG))
            for row in scan_batches(memoryview(data)).batches:
                found[row[1]] = data[row[0] : row[0] + row[5]]
        for offset, token in acknowledged.items():
            if offset >= max(start, log.snapshot.log_start_offset):
                assert token in found.get(offset, b""), f"offset {offset} is lost"
