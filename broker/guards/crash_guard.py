"""Guard against crash loops: the broker comes up, serves readers, and takes no records.

A start is remembered in the data directory until the broker has lived for a minute, or stopped
well. Once `horolog.crash.loop.starts` of them are within `horolog.crash.loop.window.ms`, a request
may be the cause: producers receive KAFKA_STORAGE_ERROR (56), which they retry, and nothing is
compacted, for `horolog.crash.loop.hold.ms` or until an operator confirms. Reading, groups and the
admin API continue, so that an operator can look. The wall clock dates starts, since
nothing else outlives the process; one that jumped makes old starts forgotten.
"""

from collections.abc import Callable

from broker.runtime.event_log import event
from config.broker import BrokerConfig
from protocol.errors import ErrorCode, KafkaError
from storage.env import Env
from storage.errors import CorruptCheckpoint, DiskError, FileMissing
from storage.files.checkpoints import decode_rows, encode_rows, numbers

FILE_NAME = "horolog-starts-checkpoint"
SETTLED_SECONDS = 60.0
"""Uptime after which a process does not count as crashing, in seconds."""


class CrashGuard:
    """The starts of one data directory. `started` and `stopped` block; the rest is cheap."""

    def __init__(self, env: Env, log_dir: str, settings: Callable[[], BrokerConfig]) -> None:
        """Nothing is read."""
        self.recent_starts = 0
        """Starts within the window that ended soon and not well, before this one."""
        self._env = env
        self._path = f"{log_dir}/{FILE_NAME}"
        self._settings = settings
        self._before: list[int] = []
        self._held_since: float | None = None
        self._is_remembered = False
        self._started_at = env.clock.monotonic()

    @property
    def is_holding(self) -> bool:
        """True while no records are taken in."""
        if self._held_since is None:
            return False
        if self.held_for_ms <= 0:
            self._release("crash_loop_over")
        return self._held_since is not None

    @property
    def held_for_ms(self) -> int:
        """Rest of the hold without a confirmation, in ms."""
        if self._held_since is None:
            return 0
        passed = self._env.clock.monotonic() - self._held_since
        return max(0, round(self._settings().horolog_crash_loop_hold_ms - passed * 1000))

    @property
    def fault(self) -> str | None:
        """The hold and its reason, for /readyz and producers; None without one."""
        if not self.is_holding:
            return None
        return (
            f"The broker ended {self.recent_starts} times soon after its start: no records are "
            f"taken for another {self.held_for_ms // 1000} s, or until POST /api/starts/confirm"
        )

    def check(self) -> None:
        """KafkaError (KAFKA_STORAGE_ERROR) while records are not taken in."""
        fault = self.fault
        if fault is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, fault)

    def started(self, *, was_clean: bool) -> None:
        """Judge this start by those before it, and remember it. Hold the directory's lock."""
        settings, now_ms = self._settings(), self._env.clock.now_ms()
        window_ms = settings.horolog_crash_loop_window_ms
        known = [] if was_clean else self._load()
        self._before = [each for each in known if 0 <= now_ms - each < window_ms]
        self.recent_starts = len(self._before)
        limit = settings.horolog_crash_loop_starts
        if limit and self.recent_starts >= limit:
            self._held_since = self._env.clock.monotonic()
            event(
                "crash_loop",
                "error",
                starts=self.recent_starts,
                window_ms=window_ms,
                held_ms=settings.horolog_crash_loop_hold_ms,
            )
        if limit:
            self._is_remembered = True
            self._save([*self._before, now_ms][-limit:])

    def refused(self) -> None:
        """The start ended with an error that says what to do: that is no crash. Blocks."""
        if self._is_remembered:
            self._save(self._before)

    def look(self) -> None:
        """Once a while: a broker that has lived long enough is in no loop. Blocks."""
        lived = self._env.clock.monotonic() - self._started_at
        if self._is_remembered and lived >= SETTLED_SECONDS:
            self._is_remembered = False
            self._save(self._before)

    def confirm(self) -> bool:
        """Ends the hold after an operator has looked; True when there was one."""
        was_holding = self.is_holding
        if was_holding:
            self._release("crash_loop_confirmed")
        return was_holding

    def stopped(self) -> None:
        """The broker stopped well: no start counts any more."""
        if self._is_remembered or self._before:
            self._save([])

    def _release(self, what: str) -> None:
        self._held_since = None
        event(what)

    def _load(self) -> list[int]:
        try:
            rows = decode_rows(self._path, self._env.fs.read_text(self._path), columns=1)
            return [ms for row in rows for ms in numbers(self._path, row)]
        except FileMissing:
            return []
        except (CorruptCheckpoint, DiskError) as error:
            event("starts_unknown", "warning", error=error)
            return []

    def _save(self, starts: list[int]) -> None:
        """Not being able to remember a start must not keep anybody from starting."""
        try:
            self._env.fs.write_atomically(self._path, encode_rows([[each] for each in starts]))
        except DiskError as error:
            event("starts_unknown", "warning", error=error)
