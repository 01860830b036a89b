"""Sinks of the security audit: a file that only its owner reads, or standard error."""

import os
import stat
import sys
from collections.abc import Sequence
from logging import INFO, LogRecord
from logging.handlers import RotatingFileHandler
from typing import IO, Protocol

from config.errors import ConfigError

KEY = "horolog.security.audit.file"
MAX_BYTES = 16 * 1024 * 1024
MAX_FILES = 10
OWNER_ONLY = 0o600


class AuditSink(Protocol):
    """Takes lines, on a thread."""

    name: str

    def write(self, lines: Sequence[str]) -> int:
        """The number of lines that were written, from the first: all, or until an error."""


class StandardError:
    """Standard error, beside the log."""

    name = "standard error"

    def write(self, lines: Sequence[str]) -> int:
        """As `AuditSink.write`."""
        try:
            sys.stderr.write("".join(f"{line}\n" for line in lines))
            sys.stderr.flush()
        except (OSError, ValueError):  # it was closed
            return 0
        return len(lines)


class AuditFile:
    """A file, and ten older ones: NAME.1 is the youngest of them."""

    name = "file"

    def __init__(self, path: str) -> None:
        """Opens it, so that a wrong path refuses a start; blocks. ConfigError."""
        self._path = path
        self._handler: _Rotated | None = None
        try:
            self._handler = _Rotated(path)
        except OSError as error:
            raise ConfigError(
                KEY, f"{KEY}: {path} cannot be written: {error.strerror or error}"
            ) from error

    def write(self, lines: Sequence[str]) -> int:
        """As `AuditSink.write`; after an error the file is opened again with the next call."""
        for written, line in enumerate(lines):
            try:
                if self._handler is None:
                    self._handler = _Rotated(self._path)
                self._handler.emit(LogRecord("", INFO, "", 0, line, None, None))
            except (OSError, ValueError):
                self.close()
                return written
        return len(lines)

    def close(self) -> None:
        """The next line opens it again."""
        handler, self._handler = self._handler, None
        if handler is not None:
            handler.give_up()


class _Rotated(RotatingFileHandler):
    """The library's rotation, for a file of mode 0600 whose errors are ours to judge."""

    def __init__(self, path: str) -> None:
        super().__init__(path, maxBytes=MAX_BYTES, backupCount=MAX_FILES, encoding="utf-8")

    def _open(self) -> IO[str]:  # type: ignore[override]
        descriptor = os.open(self.baseFilename, os.O_RDWR | os.O_APPEND | os.O_CREAT, OWNER_ONLY)
        try:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.fchmod(descriptor, OWNER_ONLY)
                _end_line(descriptor)
        except OSError:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: LogRecord) -> None:  # noqa: ARG002, N802 - the library's name
        raise  # noqa: PLE0704 - called while the error is handled

    def give_up(self) -> None:
        """Closes it, and drops what could not be written."""
        stream, self.stream = self.stream, None
        try:
            if stream is not None:
                stream.close()
        except (OSError, ValueError):
            pass
        self.close()


def _end_line(descriptor: int) -> None:
    """A line that a full disk has cut ends before the next one begins."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
