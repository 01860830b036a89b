"""Lives of two partitions by one seed: one goes on in a store, its twin has all in its directory.

Both get the same batches, starts and deletions, and are asked the same. Beside them a plain list
has what was acknowledged. While the store is at fault a call may fail, with an error that says so;
an answer that it does give is the right one. When the faults are over everything is as before.

Some are compacted: both in the same runs, the twin in its directory, the other one in both tiers.
Of each key the last record of the list is there, or the tombstone that has removed it was.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from protocol.errors import KafkaError
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.errors import StorageError
from storage.retention.cleanability import Verdict
from storage.segment.log_snapshot import TimestampOffset
from storage.validation.internal_batch import own_batch
from storage.zones.zone_map import ARRIVAL_ESTIMATED, Zone
from tests.support.disk.simenv import SimClock
from tests.support.records.cleaning import COMPACT
from tests.support.tier.leftovers import missing, unnamed
from tests.support.tier.often_full import often_full
from tests.support.tier.store_weather import StoreWeather, Weather
from tests.support.tier.tier_crash_world import read_rows
from tests.support.tier.tier_life import NOW, TierLife
from tests.support.tier.tier_questions import Question, Wanted, batches_of, questions

Pair = tuple[bytes, bytes | None]  # key, value

FAR_FUTURE = NOW + 10**12
TINY_CACHE, LARGE_CACHE = 1, 1 << 24


class Row(NamedTuple):
    """A record in the list."""

    offset: int
    time_ms: int
    arrival_ms: int
    value: bytes | None
    key: bytes = b"k"
    transaction: int = -1
    """Its number, if it is of one."""


def _estimated(life: TierLife) -> list[Zone]:
    """Zones of the active segment whose arrivals are estimates."""
    snapshot, (indexes, rules) = life.log.snapshot, life.log.search.lookup
    zones = indexes.of(snapshot.active, snapshot.end_position, rules).zones
    return [each for each in zones.zones() if each.flags & ARRIVAL_ESTIMATED]


class TierTwins:
    """Both partitions, the list, and the seed that drives them."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(f"tier {seed}")
        self.story: list[str] = []
        self.rows: list[Row] = []
        self.start = 0
        self.answers = self.errors = 0
        """Questions that were answered, and those to which an error was the answer."""
        self.weather = StoreWeather(dice)
        self.objects = self.weather.objects
        settings: dict[str, Any] = {
            "segment_bytes": dice.choice((500, 900, 2000)),
            "index_interval_bytes": dice.choice((0, 100, 400)),
            "horolog_time_index_entry": dice.choice(("max", "max", "next")),
            "message_timestamp_type": dice.choice(("CreateTime",) * 5 + ("LogAppendTime",)),
        }
        self.is_compacted = dice.random() < 0.4
        if self.is_compacted:
            settings["cleanup_policy"] = COMPACT
            settings["delete_retention_ms"] = dice.choice((1, 5000, 10**9))
        self.cleaned_away = 0
        """Segments that runs have replaced in the store."""
        self.topics = 1
        self.restores = 0
        self.is_cleaned = False
        """True once the twins may have other segments."""
        self.is_apart = False
        """True once batches differ. A run after one that has ended in the middle, or that finds the
        records of a transaction gone, lets its marker leave earlier than the twin's."""
        cache = dice.choice((TINY_CACHE, 3_000_000, LARGE_CACHE))
        self.tier = TierLife(self.weather.store, cache_bytes=cache, clock=SimClock(NOW), **settings)
        self.alone = TierLife(None, clock=SimClock(NOW), **settings)
        self.lives = (self.alone, self.tier)
        self._sequences: dict[int, int] = {}
        self._last: dict[int, tuple[list[int], int]] = {}
        self._has_estimates = False
        """Some arrivals were lost with a kill: each of both estimates them as well as it can."""
        self._open: dict[int, int] = {}
        """Numbers of open transactions, by producer."""
        self._begun = 0
        self._aborted: set[int] = set()
        self._last_arrival = 0
        self._character = dice.choice(("rising", "shuffled", "dirty", "untimed", "mixed"))
        for life in self.lives:
            life.create()

    # --- the store as a whole ---

    def create_again(self) -> None:
        """The topic is deleted and made again: nothing of the first one is in the second."""
        for life in self.lives:
            life.create_again()
        self.rows.clear()
        self.start = self._last_arrival = 0
        for known in (self._sequences, self._last, self._open, self._aborted):
            known.clear()
        self.weather.forget_lost()
        self.is_cleaned = self.is_apart = self._has_estimates = False
        self.topics += 1

    def empty_trash(self) -> None:
        self._may_fail(self.tier.empty_trash)

    def sweep(self) -> None:
        self._may_fail(self.tier.sweep)

    def restore(self) -> None:
        """A restore would give the list's records, up to where they were copied."""
        if not self.weather.is_fair:
            return
        self.tier.expire()
        again = self.tier.restored(self.objects)
        if again is None:
            return
        snapshot = again.log.snapshot
        assert snapshot.log_start_offset == self.start, "a restore begins elsewhere"
        end = snapshot.log_end_offset
        known = [row for row in self.rows if self.start <= row.offset < end]
        offsets = {row.offset for row in known}
        found = {at: each.value for at, each in read_rows(again.log).items() if at in offsets}
        self._check_kept(found, known)
        self.restores += 1

    def check_store(self) -> None:
        """Nothing is there that no manifest names, once what waits has gone."""
        self._advance(120_000)
        self.tier.expire()
        self.tier.empty_trash()
        for _ in range(4):
            self.tier.sweep()
        assert not self.tier.deleted, "a deleted topic has objects"
        assert not unnamed(self.objects), f"orphans: {unnamed(self.objects)}"
        assert not missing(self.objects), f"lost: {missing(self.objects)}"

    def go_on_restored(self) -> None:
        """The disk is lost after all was copied: what the store gives answers as the twin does."""
        for life in self.lives:
            life.log.roll()
            life.sync()
        self.tier.copy_all()
        again = self.tier.restored(self.weather.store)
        if again is None:
            return
        self.tier = again
        self.lives = (self.alone, again)
        self._tell("restored")
        self.ask(4)
        self.check_all()

    # --- a life ---

    @often_full()
    def live(self, steps: int = 40) -> None:
        """So many steps, questions between them."""
        for _ in range(steps):
            self._step()
            if self.dice.random() < 0.25:
                self.ask(2)
        self._tell("clear up")
        self.weather.clear_up()
        self.end_transactions(1.0)
        self.sync()
        self.tier.copy_all()
        self.tier.drop()
        if self.is_compacted:
            self.clean()
            self.expire()
        self.ask(6)
        self.check_all()
        self.check_store()
        self.go_on_restored()

    def _step(self) -> None:
        dice = self.dice
        step: Callable[[], None] = dice.choices(
            (
                self.append, self.roll, self.sync, self.copy, self.drop, self.expire,
                self.delete_records, self.retain, self.restart, self.kill, self.wait,
                self.change_weather, self.checkpoint, self.end_transactions, self.clean,
                self.create_again, self.sweep, self.empty_trash, self.restore,
            ),
            (50, 4, 30, 25, 25, 6, 2, 1, 4, 3, 4, 8, 3, 12, 10 * self.is_compacted, 1, 4, 6, 3),
        )[0]  # fmt: skip
        self._tell(step.__name__)
        step()

    def _tell(self, text: str) -> None:
        self.story.append(text)

    def append(self) -> None:
        """A few batches of a client: plain, idempotent, or of a transaction."""
        dice = self.dice
        for _ in range(dice.randint(1, 4)):
            times = [self._time() for _ in range(dice.choice((1, 1, 2, 4)))]
            value: bytes | None = dice.randbytes(dice.choice((5, 40, 150)))
            key = b"k"
            if self.is_compacted:
                key = b"k%d" % dice.randrange(9)
                value = dice.choice((value, value, None))
            codec = dice.choice((Codec.NONE,) * 4 + (Codec.GZIP, Codec.LZ4))
            batch: dict[str, Any] = {"codec": codec}
            producer = dice.choice((-1, -1, 1, 2, 3, 4))
            if producer >= 0:
                batch |= {"producer_id": producer, "producer_epoch": 0}
                batch |= {"base_sequence": self._sequences.get(producer, 0)}
                if dice.random() < 0.1 and producer in self._last:  # the newest batch once more
                    times, first = self._last[producer]
                    batch["base_sequence"] = first
            if producer >= 3:
                batch["transactional"] = True
            self._send(times, (key, value), producer, batch)
            self._advance(dice.choice((0, 0, 1, 700)))

    def _send(self, times: list[int], pair: Pair, producer: int, batch: dict[str, Any]) -> None:
        key, value = pair
        data = build_batch([(at, key, value) for at in times], **batch)
        results = []
        for life in self.lives:
            try:
                sent = memoryview(bytearray(data))
                result = life.log.append(sent, acks_all=True, leader_epoch=0)
                if result.duplicate:  # the time that a snapshot keeps is another one
                    result = result._replace(log_append_time_ms=-1)
                results.append(result)
            except KafkaError as error:
                results.append(error.code)  # type: ignore[arg-type]
        alone, tier = results
        assert alone == tier, f"append: {tier}, the twin says {alone}"
        if not isinstance(alone, tuple) or alone.duplicate:
            return
        if producer >= 0:
            self._sequences[producer] = batch["base_sequence"] + len(times)
            self._last[producer] = times, batch["base_sequence"]
        transaction = -1
        if batch.get("transactional"):
            self._begun += producer not in self._open
            transaction = self._open.setdefault(producer, self._begun)
        self._last_arrival = max(self._last_arrival, self.tier.clock.now_ms())
        stamp = alone.log_append_time_ms
        for index, at in enumerate(times):
            shown = at if stamp < 0 else stamp
            row = Row(alone.base_offset + index, shown, self._last_arrival, value, key, transaction)
            self.rows.append(row)

    def end_transactions(self, share: float = 0.7) -> None:
        """Some transactions end."""
        for producer in sorted(self._open):
            if self.dice.random() < share:
                kind = self.dice.choice((ABORT, COMMIT))
                for life in self.lives:
                    now = life.clock.now_ms()
                    marker = own_batch(build_marker(Marker(kind, 0), producer, 0, now), now)
                    life.log.append_own(marker, acks_all=True, leader_epoch=0)
                transaction = self._open.pop(producer)
                if kind == ABORT:
                    self._aborted.add(transaction)
                self._last_arrival = max(self._last_arrival, self.tier.clock.now_ms())

    def _time(self) -> int:
        dice, now = self.dice, self.tier.clock.now_ms()
        match self._character:
            case "rising":
                return now
            case "shuffled":
                return now + dice.randint(-5000, 5000)
            case "dirty":
                return dice.choice((now, now, now, FAR_FUTURE, now // 1000, 0))
            case "untimed":
                return dice.choice((-1, -1, -1, now))
        return dice.choice((-1, now, now + dice.randint(-3000, 3000), FAR_FUTURE, 5))

    def _advance(self, ms: int) -> None:
        for life in self.lives:
            life.clock.advance(ms)

    def roll(self) -> None:
        assert self.alone.log.roll() == self.tier.log.roll()

    def sync(self) -> None:
        for life in self.lives:
            life.sync()

    def checkpoint(self) -> None:
        for life in self.lives:
            life.manager.checkpoint()

    def wait(self) -> None:
        self._advance(self.dice.choice((10, 5000, 100_000)))
        if self.dice.random() < 0.2:  # the machine's clock is set back
            for life in self.lives:
                life.clock.step(-20_000)
        for life in self.lives:
            life.remove_files()

    def copy(self) -> None:
        count = self.dice.choice((1, 1, 100))
        self._may_fail(lambda: [self.tier.copy_next() for _ in range(count)])

    def drop(self) -> None:
        end = self.tier.log.snapshot.log_end_offset
        below = self.dice.choice((None, self.dice.randint(0, end)))
        self._may_fail(lambda: self.tier.drop(below))

    def expire(self) -> None:
        self._may_fail(self.tier.expire)

    def clean(self) -> None:
        """A run over both, up to where the one of both tiers may be cleaned.

        One that a fault ended is begun again: what it has replaced is replaced.
        """
        self.sync()
        verdict = self._may_fail(self.tier.verdict)
        if verdict is None:
            return
        self.is_cleaned = self._has_estimates = True
        tries = 1
        before = self.tier.log.snapshot.segments
        while self._may_fail(lambda: self._cleaned_tier(verdict)) is None:
            self.tier.tiered.show()
            self.is_apart |= self.tier.log.snapshot.segments != before
            if self.weather.state is Weather.AWAY or tries > 4:
                self.weather.clear_up()
            tries += 1
        self.alone.clean(verdict)
        self.is_apart |= self._may_fail(lambda: batches_of(self.tier)) != batches_of(self.alone)

    def _cleaned_tier(self, verdict: Verdict) -> bool:
        before = len(self.tier.tiered.replaced)
        self.tier.clean(verdict)
        self.cleaned_away += len(self.tier.tiered.replaced) - before
        return True

    def delete_records(self) -> None:
        snapshot = self.tier.log.snapshot
        before = self.dice.randint(snapshot.log_start_offset, snapshot.high_watermark)
        if self.dice.random() < 0.8:  # few go, and a large part stays
            before = min(before, snapshot.log_start_offset + self.dice.randint(0, 10))
        for life in self.lives:
            self.start = life.log.delete_records(before)

    def retain(self) -> None:
        """Retention of both tiers takes one or two segments."""
        segments = self.alone.log.snapshot.segments
        if len(segments) > 2:
            base = segments[self.dice.choice((1, 1, 2))].base_offset
            base = min(base, self.alone.log.snapshot.high_watermark)
            for life in self.lives:
                life.remove_before(base)
            self.start = max(self.start, base)

    def restart(self) -> None:
        for life in self.lives:
            life.restart()

    def kill(self) -> None:
        if self.dice.random() < 0.7:
            self.sync()
        else:
            self._has_estimates = True
        for life in self.lives:
            life.kill()
        if _estimated(self.tier) != _estimated(self.alone):
            self._has_estimates = True  # it knows when the last record of the store's part came

    def change_weather(self) -> None:
        self.weather.change()
        self._tell(f"  {self.weather.state.name}")

    def _may_fail(self, act: Callable[[], Any]) -> Any:
        """Result of the call; None for an error of the store, while that is at fault."""
        try:
            found = act()
        except StorageError as error:
            self._failed(error)
            return None
        self.answers += 1
        return found

    def _failed(self, error: StorageError) -> None:
        if self.weather.is_fair:
            raise AssertionError(f"an error without a fault: {error!r}") from error
        self._tell(f"  {error!r}")
        self.errors += 1

    # --- questions ---

    def ask(self, count: int) -> None:
        """So many rounds of questions about both; the answers are the same."""
        alone, tier = self.alone.log.snapshot, self.tier.log.snapshot
        for name in ("log_start_offset", "log_end_offset", "high_watermark", "last_stable_offset"):
            assert getattr(alone, name) == getattr(tier, name), name
        assert alone.log_start_offset == self.start
        for _ in range(count):
            if self.is_apart:
                self._itself()
                continue
            for question in self._questions():
                self._both(question)

    def _itself(self) -> None:
        """Answers by time are what fetches bring: the one-line model of offsets and times."""
        rows = self._may_fail(lambda: read_rows(self.tier.log))
        if rows is None:
            return
        largest = max((each.timestamp for each in rows.values()), default=-1)
        for at in (self._time(), largest, largest + 1):
            first = next((each.offset for each in rows.values() if each.timestamp >= at >= 0), None)
            found = self._may_fail(partial(self._first_at, at))
            if found is not None and at >= 0:
                assert (found[0] and found[0].offset) == first, f"time {at}: {found}, not {first}"

    def _first_at(self, at: int) -> list[TimestampOffset | None]:
        return [self.tier.log.search.first_at_or_after(at)]

    def _questions(self) -> list[Question]:
        times = [row.time_ms for row in self.rows[-200:]] or [NOW]
        extra = (0, FAR_FUTURE * 2, NOW, self.tier.clock.now_ms())
        wanted = Wanted.drawn(self.dice, self.alone, (*times, *extra))
        return questions(wanted, has_estimates=self._has_estimates, is_cleaned=self.is_cleaned)

    def _both(self, question: Question) -> None:
        expected = question.ask(self.alone)
        try:
            found = question.ask(self.tier)
        except StorageError as error:
            self._failed(error)
            return
        self.answers += 1
        assert found == expected, f"{question.name}: {found}, the twin says {expected}"

    def check_all(self) -> None:
        """Every record of the list is there, once, and nothing else."""
        snapshot = self.tier.log.snapshot
        found = self._found(self.start, snapshot.high_watermark)
        known = {row.offset: row for row in self.rows if row.offset >= self.start}
        kept = [(offset, value) for offset, value in found if offset in known]
        below = [row for row in known.values() if row.offset < snapshot.high_watermark]
        assert len(dict(kept)) == len(kept), "an offset comes twice"
        self._check_kept(dict(kept), below)

    def _check_kept(self, found: Mapping[int, bytes | None], known: list[Row]) -> None:
        """Compares what was found with what is known, or what compaction leaves of it."""
        if self.is_cleaned:
            self._check_last(found, known)
        else:
            wanted = [(row.offset, row.value) for row in known]
            assert list(found.items()) == wanted, "the list has other records"

    def _check_last(self, kept: Mapping[int, bytes | None], known: list[Row]) -> None:
        """The one-line model of compaction."""
        committed = [row for row in known if row.transaction not in self._aborted]
        wanted = {row.key: row for row in committed}
        found = {row.key: row for row in committed if row.offset in kept}
        assert all(kept[row.offset] == row.value for row in found.values())
        for key, row in wanted.items():
            is_gone = row.value is None and key not in found
            assert is_gone or found.get(key) == row, f"{key!r}: {found.get(key)}, not {row}"

    def _found(self, at: int, end: int) -> list[tuple[int, bytes | None]]:
        found: list[tuple[int, bytes | None]] = []
        start = at
        while at < end:
            data = memoryview(self.tier.read(at, self.dice.choice((1, 300, 1 << 20))))
            rows = [row for row in scan_batches(data).batches if row[0] + row[5] <= len(data)]
            assert rows, f"nothing at {at}"
            for row in rows:
                records = read_records(data[row[0] : row[0] + row[5]])
                found += [(each.offset, each.value) for each in records if each.offset >= start]
            at = rows[-1][2] + 1
        assert len({offset for offset, _ in found}) == len(found), "an offset comes twice"
        return found
