"""The copier's own program: sends what its broker's lines bring, until these end.

It has no port, no file but those that come, and the environment of the broker, where it finds
credentials as that does. What it has sent counts once the broker names it. A broker that is gone,
killed too, has ended the lines: then it ends at once.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker.access.store.objects import open_store
from broker.tier.copier.book import RowBook
from broker.tier.copier.faults import row_of
from broker.tier.copier.line import CopierLine, LineEnded
from broker.tier.counted_store import CountedStore
from broker.tier.store_account import Purpose, RequestKind
from config.tier.url import TierUrl
from storage.errors import StorageError
from storage.posix import PosixFile
from storage.tier.carrying import StoreCarrier
from storage.tier.port import ObjectStore

PATIENCE = 10
"""Nice levels: where cores are short, about a tenth of what others get."""
IDLE_SECONDS = 10.0
"""Of no new line, after which the memory of buffers goes back to the system."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
KEPT_BYTES = 32 * 1024 * 1024
"""Of free memory in the heap of a thread while there is work; the largest that glibc takes."""
SIGN_SECONDS = 5.0
"""Between packets, at the least, while the store answers one request after the other."""


class Porter:
    """Serves one line. One thread's."""

    def __init__(self, line: CopierLine, store: ObjectStore) -> None:
        """Nothing was ordered."""
        self._line = line
        self._book = _Signs(self._tell)
        counted = CountedStore(store, self._book, Purpose.COPY)
        self._carrier = StoreCarrier(counted, self._book.spoilt)

    def serve(self) -> None:
        """Sends one object after the other until the line ends."""
        try:
            while True:
                self._carry(*self._line.receive())
        except OSError:  # who has ordered is gone, or wants no answer any longer
            return
        finally:
            self._line.close()

    def _carry(self, order: Mapping[str, Any], files: Sequence[int]) -> None:
        file = PosixFile(order["path"], files[0])
        try:
            sent = self._carrier.send_file(order["key"], file, order["size"], self._pace)
        except StorageError as error:
            self._tell({"error": row_of(error)})
        else:
            self._tell({"crc": sent.crc, "block_sums": sent.block_sums.hex()})
        finally:
            file.close()

    def _pace(self, size_bytes: int) -> None:
        self._tell({"about": size_bytes})
        self._line.receive()

    def _tell(self, content: Mapping[str, Any]) -> None:
        self._line.send({**content, "account": self._book.take()})


class _Signs(RowBook):
    """Has the broker hear of long work now and then: of one that is silent it thinks the worst."""

    def __init__(self, tell: Callable[[Mapping[str, Any]], None]) -> None:
        super().__init__()
        self._tell = tell
        self._taken = time.monotonic()

    def take(self) -> list[tuple[str | int, ...]]:
        self._taken = time.monotonic()
        return super().take()

    def asked(self, what: RequestKind, requests: int = 1) -> None:
        super().asked(what, requests)
        if time.monotonic() - self._taken > SIGN_SECONDS:
            self._tell({})


def main(descriptor: int) -> None:
    """Serves the broker at the other end of this descriptor; ends with it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the broker, which ends this one
    os.nice(PATIENCE)
    _keep_memory()
    control = CopierLine(socket.socket(fileno=descriptor))
    try:
        place, _ = control.receive()
        url = TierUrl(place["bucket"], place["prefix"])
        store = open_store(url, allow_http=place["allow_http"])
        while True:
            _take_on(control, store)
    except LineEnded:
        os._exit(0)  # whatever its threads do: nobody counts it


def _take_on(control: CopierLine, store: ObjectStore) -> None:
    try:
        _, files = control.receive(IDLE_SECONDS)
    except TimeoutError:
        _return_memory()
        return
    for each in files:
        porter = Porter(CopierLine(socket.socket(fileno=each)), store)
        threading.Thread(target=porter.serve, daemon=True).start()


def _keep_memory() -> None:
    """Buffers of parts stay for the next ones, as long as there is work."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)


def _return_memory() -> None:
    """Free buffers go back to the system. (Only glibc has `malloc_trim`.)"""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
