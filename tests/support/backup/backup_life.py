"""Lives of a directory by seed, with back-ups that are cut off, raced by its broker, and swept.

The oracle is a plain list of all that was appended. Of a log without compaction a restore has a run
of it, up to where it was synced when the back-up began, or further; of a compacted one the last
value of each key below its end. The newest complete back-up is the one that comes back.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from storage.env import Buffer
from storage.errors import StorageError
from storage.log.log import Log
from storage.tier.cluster_picture import newest
from tests.support.backup.backup_world import (
    HOUR_MS,
    KEYED,
    OFFSETS,
    PLAIN,
    TOPICS,
    TRANSACTIONAL,
    BackupWorld,
    LogContent,
    Name,
    content_of,
    restored,
)
from tests.support.disk.simdisk import SimulatedCrash
from tests.support.tier.memory_store import MemoryStore


class RacedStore(MemoryStore):
    """A store during whose calls a broker does something, or its client dies."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        super().__init__(now_ms)
        self.on_call: Callable[[], object] = lambda: None

    def put_new(self, key: str, data: Buffer) -> None:
        self.on_call()
        super().put_new(key, data)
        self.on_call()

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        def raced() -> Iterator[Buffer]:
            self.on_call()
            for part in parts:
                yield part
                self.on_call()

        super().put_file(key, raced(), size_bytes)
        self.on_call()

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.on_call()
            super().delete([key])


class BackupLife:
    """One life."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(f"back-ups {seed}")
        self.world = BackupWorld(TOPICS, segment_bytes=self.dice.choice((300, 700, 1500)))
        self.store = RacedStore(self.world.clock.now_ms)
        self.complete: Callable[[Mapping[Name, LogContent]], None] | None = None
        """Judges a restore of the newest back-up that is complete."""
        self.back_ups = self.cut_off = self.raced = 0

    def live(self, steps: int) -> None:
        """So many steps, and a judgement after each back-up."""
        for _ in range(steps):
            self.dice.choice((self._write, self._write, self._tidy, self._back_up))()
        self.world.sync()
        self._back_up()

    # --- the broker ---

    def _write(self) -> None:
        dice, world = self.dice, self.world
        for _ in range(dice.randint(1, 3)):
            topic = dice.choice((PLAIN, KEYED, KEYED, OFFSETS, TRANSACTIONAL))
            if topic == TRANSACTIONAL and dice.random() < 0.6:
                world.transaction(dice.randint(1, 4), is_committed=dice.choice((True, False, None)))
            else:
                world.fill(dice.randint(1, 9), topic, dice.randrange(TOPICS[topic].partition_count))
        if dice.random() < 0.7:
            world.sync()

    def _tidy(self) -> None:
        dice, world = self.dice, self.world
        world.clock.advance(dice.randrange(HOUR_MS))
        what = dice.randrange(6)
        if what == 5:  # the wall clock is set
            world.clock.step(dice.choice((-1, 1)) * dice.randrange(3 * HOUR_MS))
            return
        if what == 0:
            log = world.log(PLAIN, dice.randrange(2))
            starts = [each.base_offset for each in log.snapshot.segments]
            world.sync()
            world.retain_from(dice.choice(starts), PLAIN, log.partition)
        elif what == 1:
            world.manager.close()
            world.start()
        elif what == 2:
            world.sync()
            world.manager.release()
            world.fs = world.fs.after_kill()
            world.env = world.env.__class__(world.clock, world.fs, world.env.rng)
            world.start()
        else:
            world.compact(dice.choice((KEYED, OFFSETS)))

    # --- the back-up ---

    def _back_up(self) -> None:
        dice, world = self.dice, self.world
        world.clock.advance(1000)
        kind = dice.randrange(3)
        logs = world.manager.logs
        least = {name: _stable(log) for name, log in logs.items()}
        synced = {name for name in logs if logs[name].durable_offset == _end(logs[name])}
        calls, happenings = 0, dice.randrange(1, 40)

        def on_call() -> None:
            nonlocal calls
            calls += 1
            if calls == happenings and kind == 1:
                raise SimulatedCrash
            if calls % happenings == 0 and kind == 2 and calls < 200:
                self.store.on_call = lambda: None
                self._race()
                self.store.on_call = on_call

        def pause(_: float) -> None:
            if kind == 2:
                self._race()
            world.sync()

        self.store.on_call, before = on_call, newest(self.store)
        try:
            world.back_up(self.store, pause=pause)
            world.clock.advance(1000)
            world.sweep(self.store, dice.choice((0, HOUR_MS)), dice.choice((0, HOUR_MS)))
        except SimulatedCrash:
            self.cut_off += 1
        self.store.on_call = lambda: None
        self.back_ups += 1
        if newest(self.store) != before:  # it may have died right after
            is_raced = kind == 2
            self.raced += is_raced
            now = {} if is_raced else content_of(world.manager)
            whole = {name: now[name] for name in synced & now.keys()}
            self.complete = self._judge_of(least, whole)
        self._judge()

    def _race(self) -> None:
        self.dice.choice((self._write, self._race_tidily))()
        self.world.sync()

    def _race_tidily(self) -> None:
        dice, world = self.dice, self.world
        if dice.random() < 0.5:
            world.compact(dice.choice((KEYED, OFFSETS)))
            return
        log = world.log(PLAIN, dice.randrange(2))
        world.sync()
        world.retain_from(log.snapshot.segments[-1].base_offset, PLAIN, log.partition)

    def _judge(self) -> None:
        if self.complete is None:
            try:
                restored(self.world, self.store)
            except StorageError:
                return
            raise AssertionError("a back-up that was cut off counts")
        manager, _ = restored(self.world, self.store)
        self.complete(content_of(manager))

    def _judge_of(
        self, least: Mapping[Name, int], whole: Mapping[Name, LogContent]
    ) -> Callable[[Mapping[Name, LogContent]], None]:
        seen: list[Mapping[Name, LogContent]] = []

        def judge(found: Mapping[Name, LogContent]) -> None:
            if seen:
                assert found == seen[0], "the same back-up gives something else"
                return
            seen.append(found)
            for name, content in found.items():
                self._judge_log(name, content, least[name])
                assert content == whole.get(name, content), f"{name}: not as the directory"

        return judge

    def _judge_log(self, name: Name, content: LogContent, least: int) -> None:
        assert content.end_offset >= least, f"{name}: it ends at {content.end_offset}, not {least}"
        known = self.world.appended[name]
        for row in content.records:
            assert known[row[0]] in {None, row}, f"{name}: {row[0]} is another record"
        offsets = [row[0] for row in content.records]
        if name[0] in {PLAIN, TRANSACTIONAL}:
            expected = [at for at in known if content.start_offset <= at < content.end_offset]
            assert offsets == expected, f"{name}: {set(expected) ^ set(offsets)}"
            return
        rows = [row for at, row in sorted(known.items()) if at < content.end_offset]
        latest = {row[2]: row for row in rows if row is not None}
        for row in latest.values():
            if row[3] is not None:
                assert row[0] in offsets, f"{name}: the last record of {row[2]!r} is lost"
        kept = {row[2]: row for row in content.records}
        for key, row in kept.items():
            assert latest[key] == row, f"{name}: an old record of {key!r} is back"


def _stable(log: Log) -> int:
    return min(log.durable_offset, log.snapshot.last_stable_offset)


def _end(log: Log) -> int:
    return log.snapshot.log_end_offset
