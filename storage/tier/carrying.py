"""Sends one object of a copy to the store, and proves that what arrived is what was sent.

Whoever carries it reads it back whole: only then does the manifest name it, and the local segment
may go. A broker has a process of its own for that (`broker.tier.copier`), which runs this here.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from protocol.checksum import crc32c
from storage.env import Buffer, File
from storage.errors import CorruptLog
from storage.tier.object_cache import sums_of
from storage.tier.port import ObjectStore, in_pieces

PART_BYTES = 4 * 1024 * 1024
"""Of a file, read at a time; whole blocks."""

Pace = Callable[[int], None]
"""Called with the bytes that are about to be sent or fetched; may wait."""


class NotAsSent(CorruptLog):
    """The store has other bytes than were sent; the copy does not count."""


class Sent(NamedTuple):
    """Checksums of an object that has arrived: CRC-32C of all of it, and of each block."""

    crc: int
    block_sums: bytes


class Carrier(Protocol):
    """Sends objects of copies. Used from any thread; each call blocks for as long as the store."""

    def send_file(self, key: str, file: File, size_bytes: int, pace: Pace) -> Sent:
        """Makes an object of the first bytes of a file that does not change.

        `pace` is called before each part is read. DiskError: of the disk or of the store.
        CorruptLog when the file is shorter; NotAsSent. Nothing counts then.
        """

    def send_bytes(self, key: str, data: bytes, pace: Pace) -> Sent:
        """Makes an object of some bytes. As `send_file`."""


class StoreCarrier:
    """Sends on the thread that asks for it."""

    def __init__(self, store: ObjectStore, spoilt: Callable[[str], None]) -> None:
        """`spoilt` is called with the key of an object that did not arrive as it was sent."""
        self._store = store
        self._spoilt = spoilt

    def send_file(self, key: str, file: File, size_bytes: int, pace: Pace) -> Sent:
        """As the port has it."""
        reading = _Reading(_parts_of(file, size_bytes, pace))
        return self._send(key, reading, size_bytes)

    def send_bytes(self, key: str, data: bytes, pace: Pace) -> Sent:
        """As the port has it."""
        pace(len(data))
        return self._send(key, _Reading(iter((data,))), len(data))

    def _send(self, key: str, reading: "_Reading", size_bytes: int) -> Sent:
        self._store.put_file(key, reading.parts(), size_bytes)
        self._check(key, size_bytes, reading.crc)
        return Sent(reading.crc, reading.block_sums)

    def _check(self, key: str, size_bytes: int, crc: int) -> None:
        """Reads back what arrived. NotAsSent."""
        found = came = 0
        for piece in in_pieces(self._store, key, 0, size_bytes):
            found, came = crc32c(piece, found), came + len(piece)
        if came != size_bytes:
            self._spoilt(key)
            raise NotAsSent(key, f"{came} of {size_bytes} bytes arrived")
        if found != crc:
            self._spoilt(key)
            raise NotAsSent(key, "other bytes arrived than were sent")


class _Reading:
    """Parts on their way, and the checksums of what was read."""

    def __init__(self, parts: Iterator[Buffer]) -> None:
        self._parts = parts
        self.crc = 0
        self.block_sums = b""

    def parts(self) -> Iterator[Buffer]:
        for data in self._parts:
            self.crc = crc32c(data, self.crc)
            self.block_sums += sums_of(data)
            yield data


def _parts_of(file: File, size_bytes: int, pace: Pace) -> Iterator[Buffer]:
    for at in range(0, size_bytes, PART_BYTES):
        size = min(PART_BYTES, size_bytes - at)
        pace(size)
        data = file.read_at(at, size)
        if len(data) < size:
            raise CorruptLog(file.path, f"it ends at {at + len(data)}")
        yield data
