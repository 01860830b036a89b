"""`horolog-synced`: the offset below which all of a log was synced, without an error.

After an unclean stop a hole in a log is either what an unsynced tail lost, and nobody was promised,
or damage to what was synced; its bytes do not tell. The checkpoint of recovery points does, and is
up to a minute old. This mark is written after each sync of the `.log`, and is not synced itself: it
is exact when the process alone was killed, and after a power cut as old as what the kernel had
written out. Whenever it is there, what it speaks of was on the disk before it.

A line of 30 bytes, replaced in place: the offset, 20 digits, and the CRC-32C of those, 8 hex
digits. One that is missing or damaged vouches for nothing. Kafka passes over files of this name.
"""

from contextlib import suppress

from crc32c import crc32c

from storage.env import FileSystem
from storage.errors import DiskError, FileMissing
from storage.layout import SYNCED_MARK


def save(fs: FileSystem, directory: str, offset: int) -> None:
    """What lies below `offset` is on the disk. Never fails: without a mark less is known."""
    with suppress(DiskError):
        file = fs.open(f"{directory}/{SYNCED_MARK}", create=True)
        try:
            file.write_at(0, encode(offset))
        finally:
            file.close()


def load(fs: FileSystem, directory: str) -> int:
    """The offset, 0 when nothing sound says so. DiskError."""
    try:
        data = fs.read_bytes(f"{directory}/{SYNCED_MARK}")
    except FileMissing:
        return 0
    digits = data[:20]
    offset = int(digits) if digits.isdigit() else 0
    return offset if data == encode(offset) else 0


def encode(offset: int) -> bytes:
    """The bytes of a mark."""
    digits = b"%020d" % offset
    return digits + b" %08x\n" % crc32c(digits)
