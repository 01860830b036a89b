"""Logs are events with fields: one line each on standard error, as logfmt or JSON.

`event` is the only way to log in this package; the security audit has lines of its own. Warnings of
one name that come faster than the limit are suppressed, and the next line has their number. Values
from clients are escaped and cut.
Logging never raises and never ends anything.
"""

import json
import logging
import sys
import traceback
from collections.abc import Callable
from itertools import count

LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
MAX_VALUE = 256
MAX_TRACE = 8000
LINES_PER_SECOND = 10  # of one event name

_numbers = count(1)


def _to_stderr(line: str) -> None:
    try:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # standard error was closed: nobody reads the log
        return


class Journal:
    """Target of events. One per process, set up once by `configure`."""

    def __init__(self) -> None:
        """Logs warnings and errors as logfmt until configured."""
        self.threshold = LEVELS["warning"]
        self.as_json = False
        self.now_ms: Callable[[], int] = lambda: 0
        self.write: Callable[[str], object] = _to_stderr
        self._windows: dict[str, list[int]] = {}  # name: second, lines in it, suppressed

    def event(self, name: str, level: str, fields: dict[str, object]) -> int:
        """Writes one line; returns the event's number, which the line carries."""
        number = next(_numbers)
        now = self.now_ms()
        if LEVELS[level] < self.threshold or self._suppressed(name, now // 1000, fields):
            return number
        line = {"time": _instant(now), "level": level, "event": name, "id": number, **fields}
        self.write((_json if self.as_json else _logfmt)(line))
        return number

    def _suppressed(self, name: str, second: int, fields: dict[str, object]) -> bool:
        window = self._windows.setdefault(name, [second, 0, 0])
        if window[0] != second:
            if window[2]:
                fields["suppressed"] = window[2]
            window[:] = [second, 0, 0]
        window[1] += 1
        if window[1] > LINES_PER_SECOND:
            window[2] += 1
            return True
        return False


journal = Journal()


def event(name: str, level: str = "info", /, **fields: object) -> int:
    """Logs one event; see `Journal.event`. Levels: debug, info, warning, error."""
    return journal.event(name, level, fields)


def configure(*, level: str, as_json: bool, now_ms: Callable[[], int]) -> None:
    """Sets level and format, and leads the libraries' own logging here."""
    journal.threshold = LEVELS[level]
    journal.as_json = as_json
    journal.now_ms = now_ms
    logging.basicConfig(handlers=[_Forward()], level=logging.WARNING, force=True)


class _Forward(logging.Handler):
    """Makes events of what libraries (asyncio, aiohttp) log."""

    def emit(self, record: logging.LogRecord) -> None:
        """One event per record, with the traceback when there is one."""
        fields: dict[str, object] = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields["trace"] = "".join(traceback.format_exception(*record.exc_info))
        level = next((n for n, v in reversed(LEVELS.items()) if record.levelno >= v), "debug")
        journal.event("library_message", level, fields)


def _instant(now_ms: int) -> str:
    from config.quantities import iso

    return iso(now_ms) or f"{now_ms} ms"


def _text(name: str, value: object) -> str:
    limit = MAX_TRACE if name == "trace" else MAX_VALUE
    text = str(value)
    return text if len(text) <= limit else text[:limit] + "..."


def _logfmt(line: dict[str, object]) -> str:
    return " ".join(f"{name}={_quoted(_text(name, value))}" for name, value in line.items())


def _quoted(text: str) -> str:
    plain = text and text.isascii() and text.isprintable() and not set(text) & set(' "=')
    return text if plain else json.dumps(text)


def _json(line: dict[str, object]) -> str:
    plain = (int, float, bool, type(None))
    return json.dumps(
        {name: v if isinstance(v, plain) else _text(name, v) for name, v in line.items()}
    )
