"""Reads every closed segment again, slowly, and says what has rotted. It never changes anything.

A pass over all logs begins every `horolog.scrub.interval.ms` and reads at most
`horolog.scrub.max.bytes.per.second`; how far it came outlives the process. A finding is a log
event, a metric and an entry of /api/scrub until a later look at the same segment finds it well, or
the segment is gone. Nobody waits for it: pieces of a megabyte on a lane, with rests between them.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from broker.runtime.event_log import event
from broker.tasks.throttle import Throttle
from config.broker import BrokerConfig
from storage.errors import DiskError, StorageError
from storage.files.layout import LOG, SCRUB_FILE, PartitionName, segment_name
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.segment.segments import index_of
from storage.verify.report import Finding
from storage.verify.scrub import ScrubFile, ScrubPlace, SegmentScrub, scrubbable

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane
    from broker.runtime.probes import BrokerProbes
    from config.store import ConfigStore
    from storage.directory.log_manager import LogManager
    from storage.env import Env

T = TypeVar("T")

CHECK_SECONDS = 10.0  # how often it is asked whether a pass is due


@dataclass(frozen=True, slots=True)
class Rot:
    """Findings in one segment, with their time."""

    segment: Segment
    found_ms: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ScrubTally:
    """Work done since the start. Replaced, never changed."""

    bytes_read: int = 0
    segments_read: int = 0
    unreadable_segments: int = 0
    began_ms: int = -1
    """Of the pass that is under way, or was last; -1 if there was none."""
    ended_ms: int = -1
    """Of the last pass that came to its end since the start."""
    log: str = ""
    """The log that is being read; empty between passes."""


class Scrubber:
    """The passes, and what they found. Used from the event loop; the scrape may read."""

    def __init__(
        self,
        logs: "LogManager",
        env: "Env",
        config: "ConfigStore",
        *,
        lane: "DiskLane",
        loop: asyncio.AbstractEventLoop,
        probes: "BrokerProbes",
    ) -> None:
        """Nothing is read before `start`."""
        self._logs = logs
        self._clock = env.clock
        self._config = config
        self._lane = lane
        self._loop = loop
        self._probes = probes
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._throttle = Throttle(
            loop.time, lambda: self._settings.horolog_scrub_max_bytes_per_second
        )
        self._file = ScrubFile(env.fs, f"{lane.log_dir}/{SCRUB_FILE}")
        self._place: ScrubPlace | None = None
        self.tally: ScrubTally = ScrubTally()
        self.rot: Mapping[Log, tuple[Rot, ...]] = {}
        """By log; replaced, never changed. Segments that went may still be in it: see `found`."""

    def found(self) -> dict[Log, tuple[Rot, ...]]:
        """Known faults of segments that still exist."""
        present = {
            log: tuple(each for each in rot if each.segment in log.snapshot.segments)
            for log, rot in self.rot.items()
            if not log.is_closed
        }
        return {log: rot for log, rot in present.items() if rot}

    def met(self, log: Log, offset: int, what: str) -> None:
        """Records damage that a fetch from `offset` on detected before a pass did."""
        segments = log.snapshot.segments
        segment = segments[index_of(segments, offset)]
        if not any(each.segment is segment for each in self.rot.get(log, ())):
            finding = Finding("damage", segment_name(segment.base_offset, LOG), what)
            rot = Rot(segment, self._clock.now_ms(), (finding,))
            self.rot = {**self.rot, log: (*self.rot.get(log, ()), rot)}

    def start(self) -> None:
        """Passes begin by themselves from now on, by the broker's own wall clock."""
        self._task = self._loop.create_task(self._go_on())

    async def stop(self) -> None:
        """Stops the work under way at the end of its piece."""
        self._stopping.set()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _go_on(self) -> None:
        await self._rest(self._settings.log_initial_task_delay_ms / 1000)
        while not self._stopping.is_set():
            try:
                await self.run()
            except Exception as error:  # noqa: BLE001 - whatever it was, it is tried again
                self._probes.task_failed("scrubber")
                event("task_failed", "error", task="scrubber", error=repr(error))
            await self._rest(CHECK_SECONDS)

    async def run(self) -> None:
        """A pass, or the rest of one, if it is due."""
        if not self._settings.horolog_scrub_max_bytes_per_second:
            return
        if self._place is None:
            self._place = await self._on_lane(self._file.load)
        now_ms = self._clock.now_ms()
        place = self._place
        if place.is_over:
            if not self._is_due(place, now_ms):
                return
            place = ScrubPlace(now_ms, None, is_over=False)
        await self._pass(place)

    @property
    def _settings(self) -> BrokerConfig:
        return self._config.broker_config

    def _is_due(self, place: ScrubPlace, now_ms: int) -> bool:
        """Also when the clock went back: the next pass must not wait for it."""
        return not 0 <= now_ms - place.began_ms < self._settings.horolog_scrub_interval_ms

    async def _pass(self, place: ScrubPlace) -> None:
        self.tally = replace(self.tally, began_ms=place.began_ms)
        event("scrub_began", logs=len(self._logs.logs))
        logs = self._logs.logs
        for name in sorted(logs):
            if place.done is not None and name <= place.done:
                continue
            if not await self._scrub(logs[name]):
                return
            place = ScrubPlace(place.began_ms, PartitionName(*name), is_over=False)
            await self._remember(place)
        await self._remember(ScrubPlace(place.began_ms, None, is_over=True))
        self.rot = self.found()
        self.tally = replace(self.tally, log="", ended_ms=self._clock.now_ms())
        event("scrub_ended", faulty_logs=len(self.rot))

    async def _scrub(self, log: Log) -> bool:
        """Reads a log; False when the broker stops first."""
        self.tally = replace(self.tally, log=f"{log.topic}-{log.partition}")
        for segment, following in scrubbable(log):
            scrub = SegmentScrub(log, segment, following)
            try:
                if not await self._read(scrub.steps()):
                    return False
            except StorageError as error:
                self._unreadable(log, segment, error)
                continue
            self._note(log, segment, scrub.findings)
        return True

    async def _read(self, steps: Iterator[int]) -> bool:
        """Reads in steps; False when stopped before the end."""
        while not self._stopping.is_set() and self._settings.horolog_scrub_max_bytes_per_second:
            size = await self._on_lane(next, steps, -1)
            if size < 0:
                self.tally = replace(self.tally, segments_read=self.tally.segments_read + 1)
                return True
            self.tally = replace(self.tally, bytes_read=self.tally.bytes_read + size)
            await self._rest(self._throttle.rest(size))
        return False

    async def _rest(self, seconds: float) -> None:
        if seconds:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), seconds)

    def _note(self, log: Log, segment: Segment, findings: tuple[Finding, ...]) -> None:
        others = tuple(each for each in self.rot.get(log, ()) if each.segment is not segment)
        if findings:
            now_ms = self._clock.now_ms()
            others = (*others, Rot(segment, now_ms, findings))
            for each in findings:
                is_damage = each.severity == "damage"
                event(
                    "log_damage_found" if is_damage else "log_file_wrong",
                    "error" if is_damage else "warning",
                    log=f"{log.topic}-{log.partition}",
                    file=each.file,
                    detail=each.what,
                )
        self.rot = {**self.rot, log: others}

    def _unreadable(self, log: Log, segment: Segment, error: StorageError) -> None:
        if not segment.is_removed and not log.is_closed:
            self.tally = replace(self.tally, unreadable_segments=self.tally.unreadable_segments + 1)
            finding = Finding("damage", segment.path_of("").rpartition("/")[2], str(error))
            self._note(log, segment, (finding,))

    async def _remember(self, place: ScrubPlace) -> None:
        self._place = place
        try:
            await self._on_lane(self._file.save, place)
        except DiskError as error:
            event("scrub_not_remembered", "warning", error=error)

    def _on_lane(self, work: Callable[..., T], *args: object) -> "asyncio.Future[T]":
        return self._lane.run(work, *args)
