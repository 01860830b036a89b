"""Lives many histories on one broker at once, and writes down all that the broker says.

Every step is made in all histories by one request, so hundreds of them cost a few hundred requests.
Steps of a history that the broker stamps lie some milliseconds apart, so stamps rise.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from tests.support.histories.histories import (
    HOUR_MS,
    STEPS,
    Alter,
    History,
    Settings,
    Trim,
    version_of_step,
)
from tests.support.histories.history_batches import Write
from tests.support.histories.history_life import Life, Told
from tests.support.histories.history_requests import ManyTopics
from tests.support.worlds.node_process import NodeProcess

CANARY, CLEANED_CANARY = "canary", "canary-of-the-cleaner"
SETTINGS_CANARY = "canary-of-settings"
CANARIES = (CANARY, CLEANED_CANARY, SETTINGS_CANARY)
STAMPS_APART_SECONDS = 0.003
SETTLE_SECONDS = 0.05
WITHIN_SECONDS = 60
LARGE_LIMIT = 1 << 20
LIMITS = (LARGE_LIMIT, 1, 300, 1000, 5000)
SPECIAL = (-1, -2, -3, -4, -5, -6, -7, 0, 1, 2**62, 2**63 - 1)


class Driver:
    """One broker, started and stopped as the histories ask."""

    def __init__(
        self,
        start: Callable[[Path], NodeProcess],
        data_dir: Path,
        histories: Sequence[History],
        now_ms: int,
        files_at_stop: Callable[[Life, Path], Told],
    ) -> None:
        self._start = start
        self._data_dir = data_dir
        self._now_ms = now_ms
        self.lives = [Life(history) for history in histories]
        self._by_topic = {life.history.topic: life for life in self.lives}
        self._ids: dict[str, UUID] = {}
        self._ask: ManyTopics
        self._files_at_stop = files_at_stop

    def live(self) -> None:
        """All phases, with a stop after each one."""
        for phase, _ in enumerate(STEPS, 1):
            with self._start(self._data_dir) as node:
                self._ask = ManyTopics(node.bootstrap, self._ids)
                self._live_phase(phase)
                self._ask.close()
            for life in self.lives:
                files = self._files_at_stop(life, self._data_dir)
                life.told |= {f"{phase} stopped: {name}": each for name, each in files.items()}

    def _live_phase(self, phase: int) -> None:
        if phase == 1:
            self._create()
        self._wait_for_leaders()
        self._steps(phase)
        self._let_retention_pass()
        if phase == 2:
            self._retain()
        self._leave_no_log_empty(phase)
        self._let_retention_pass()
        self._ask_questions(phase)

    def _ask_questions(self, phase: int) -> None:
        self._describe(phase)
        self._ask_for_offsets(phase)
        self._fetch(phase)
        if phase == 1:  # from then on Kafka counts epochs for each restart
            self._ask_for_epochs()

    # -- topics and settings

    def _create(self) -> None:
        day: Settings = {"retention.ms": str(24 * HOUR_MS)}
        forever: Settings = {"retention.ms": "-1"}
        wanted: dict[str, Settings] = dict.fromkeys(CANARIES, day)
        wanted[CLEANED_CANARY] = day | {"cleanup.policy": "compact,delete"}
        wanted |= {life.history.topic: life.history.settings | forever for life in self.lives}
        codes = self._ask.create(wanted)
        for name, life in self._by_topic.items():
            life.told["create"] = codes[name]

    def _wait_for_leaders(self) -> None:
        """Kafka answers before the topics can be used."""
        waiting = [*self._by_topic, *CANARIES]
        deadline = time.monotonic() + WITHIN_SECONDS
        while waiting:
            assert time.monotonic() < deadline, f"{len(waiting)} topics without leader"
            answers = self._ask.list_offsets(dict.fromkeys(waiting, -1), version=5)
            waiting = [name for name, answer in answers.items() if answer.error_code]

    def _alter(self, changes: dict[str, Settings], label: str) -> None:
        """Changes settings, and waits until they are in force: a later change is."""
        for name, code in self._ask.alter(changes).items():
            self._by_topic[name].told[label] = code
        batch = bytes(build_batch([(self._now_ms, b"k", b"v")]))
        for value, code in (("1", 10), (None, 0)):
            self._ask.alter({SETTINGS_CANARY: {"max.message.bytes": value}})
            _until(lambda code=code: self._settings_canary(batch) == code)  # type: ignore[misc]
        time.sleep(SETTLE_SECONDS)

    def _settings_canary(self, batch: bytes) -> int:
        (answer,) = self._ask.produce({SETTINGS_CANARY: batch}, 9).values()
        return int(answer.error_code)

    # -- steps

    def _steps(self, phase: int) -> None:
        for index in range(STEPS[phase - 1]):
            began = time.monotonic()
            steps = [(life, life.history.phases[phase - 1][index]) for life in self.lives]
            where = f"{phase}.{index}"
            alters = {x.history.topic: s.settings for x, s in steps if isinstance(s, Alter)}
            if alters:
                self._alter(alters, f"{where} alter")
            writes = {x: s for x, s in steps if isinstance(s, Write)}
            self._write(
                writes, f"{where} produce", version_of_step(phase, index), -(index % 2) or 1
            )
            self._trim({x: s for x, s in steps if isinstance(s, Trim)}, f"{where} trim")
            time.sleep(max(0, began + STAMPS_APART_SECONDS - time.monotonic()))

    def _write(self, writes: dict[Life, Write], label: str, version: int, acks: int) -> None:
        batches = {life.history.topic: write.records() for life, write in writes.items()}
        for name, answer in self._ask.produce(batches, version, acks).items():
            life = self._by_topic[name]
            if not answer.error_code and answer.base_offset >= life.end:
                life.wrote(writes[life], answer.base_offset, answer.log_append_time_ms)
            life.told[label] = {
                "error": answer.error_code,
                "base": answer.base_offset,
                "stamp": life.named(answer.log_append_time_ms),
                "start": answer.log_start_offset,
                "bad records": [each.batch_index for each in answer.record_errors],
            }

    def _trim(self, trims: dict[Life, Trim], label: str) -> None:
        offsets = {x.history.topic: trim.offset_in(x.start, x.end) for x, trim in trims.items()}
        for name, answer in self._ask.delete_records(offsets).items():
            life = self._by_topic[name]
            life.told[label] = (offsets[name], answer.error_code, answer.low_watermark)
            if not answer.error_code:
                life.start = answer.low_watermark

    # -- retention

    def _retain(self) -> None:
        """The histories' limits for a while; then none again."""
        self._alter({x.history.topic: x.history.limits for x in self.lives}, "limit")
        self._let_retention_pass()
        none: Settings = {"retention.ms": "-1", "retention.bytes": None}
        self._alter({life.history.topic: none for life in self.lives}, "limit no more")
        for life in self.lives:
            life.told["retained from"] = life.start

    def _leave_no_log_empty(self, phase: int) -> None:
        """One more record in each log of producers that is empty again.

        Kafka forgets the producers of such a log at its next start; we remember them.
        """
        write = Write(times=(self._now_ms - HOUR_MS,))
        empty = [x for x in self.lives if x.history.has_producers and x.start == x.end > 0]
        self._write(dict.fromkeys(empty, write), f"{phase} last produce", 9, 1)

    def _let_retention_pass(self) -> None:
        """Returns when a round over all logs was made whole, begun after the call.

        A canary that dies was looked at; between its second and third death is a whole round.
        """
        old = bytes(build_batch([(self._now_ms - 100 * HOUR_MS, b"k", b"v")]))
        for _ in range(3):
            placed = self._ask.produce({CANARY: old, CLEANED_CANARY: old}, 9)
            ends = {name: each.base_offset + 1 for name, each in placed.items()}
            _until(lambda ends=ends: self._starts(ends) == ends)  # type: ignore[misc]
        starts = self._starts(self._by_topic)
        for name, life in self._by_topic.items():
            life.start = starts[name]

    def _starts(self, names: "dict[str, Any]") -> dict[str, int]:
        answers = self._ask.list_offsets(dict.fromkeys(names, -2), version=5)
        return {name: answer.offset for name, answer in answers.items()}

    # -- questions

    def _ask_for_offsets(self, phase: int) -> None:
        for life in self.lives:
            logs = (self._data_dir / f"{life.history.topic}-0").glob("*.log")
            life.bases = sorted(int(path.stem) for path in logs)
            life.told |= {f"{phase} segments": life.bases, f"{phase} end": life.end}
        questions = {life: list(_questions(life, phase)) for life in self.lives}
        for turn in range(max(map(len, questions.values()))):
            asked = {x: each[turn] for x, each in questions.items() if turn < len(each)}
            version = 1 + turn % 11
            times = {life.history.topic: at for life, (_, at) in asked.items()}
            for name, answer in self._ask.list_offsets(times, version, turn % 2).items():
                life = self._by_topic[name]
                label = f"{phase} offset {asked[life][0]} v{version}"
                life.told[label] = (
                    answer.error_code,
                    life.named(answer.timestamp),
                    answer.offset,
                    answer.leader_epoch >= 0,
                )
                if times[name] >= 0:
                    life.lookups[label] = life.lookup(times[name], self._now_ms)

    def _ask_for_epochs(self) -> None:
        for epoch in (0, 1):
            for name, answer in self._ask.epoch_ends(list(self._by_topic), epoch).items():
                self._by_topic[name].told[f"end of epoch {epoch}"] = (
                    answer.error_code,
                    answer.leader_epoch,
                    answer.end_offset,
                )

    def _fetch(self, phase: int) -> None:
        """From the start, the middle, the end and beyond; limits that cut batches."""
        for turn, limit in enumerate(LIMITS):
            wanted = {name: _wanted(life, turn, limit) for name, life in self._by_topic.items()}
            version = 4 + (phase + turn) % 9
            for name, answer in self._ask.fetch(wanted, version).items():
                label = f"{phase} fetch {wanted[name]} v{version}"
                self._by_topic[name].told[label] = (
                    answer.error_code,
                    answer.high_watermark,
                    answer.last_stable_offset,
                    answer.log_start_offset,
                    *_batches(memoryview(answer.records or b"")),
                )

    def _describe(self, phase: int) -> None:
        keys = sorted({key for life in self.lives for key in life.history.settings})
        for name, settings in self._ask.describe(list(self._by_topic), keys).items():
            self._by_topic[name].told[f"{phase} settings"] = settings


def _questions(life: Life, phase: int) -> Iterator[tuple[Any, int]]:
    """Names of times, and the times: each one in the log, just before, just after."""
    yield from ((at, at) for at in SPECIAL)
    times = sorted({at for at, _ in life.records if at >= 0}, key=life.sorting)
    if phase < len(STEPS):
        times = random.Random(life.history.number).sample(times, min(8, len(times)))
    for at in times:
        for delta in (-1, 0, 1):
            if 0 <= at + delta < 2**63:
                yield (life.named(at), delta), at + delta


def _batches(records: memoryview) -> tuple[list[tuple[int, int]], bool]:
    """Base offset and record count of each whole batch, and whether a cut one comes after them."""
    headers = [header for _, header in iter_headers(records)]
    is_cut = sum(header.size_bytes for header in headers) < len(records)
    return [(header.base_offset, header.record_count) for header in headers], is_cut


def _wanted(life: Life, turn: int, limit: int) -> tuple[int, int]:
    """An offset and a limit of bytes; where the broker packs, sizes depend on its libraries."""
    dice = random.Random(f"{life.history.number} {turn}")
    if limit > 1 and life.history.is_packed_anew:
        limit = LARGE_LIMIT
    if not turn:
        return dice.choice((life.start, life.start - 1, life.end, life.end + 1, 10**7)), limit
    return dice.randint(life.start, max(life.start, life.end - 1)), limit


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)
