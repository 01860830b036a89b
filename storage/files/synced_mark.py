"""`horolog-synced`: the offset below which all of a log was synced, without an error.

After an unclean stop a hole in a log is either what an unsynced tail lost, and nobody was promised,
or damage to what was synced; its bytes do not tell. The checkpoint of recovery points does, and is
up to a minute old. This mark is written when the `.log` was synced, a tenth of a second later at
the most, and is not synced itself: so old it is when the process alone was killed, and after a
power cut as old as what the kernel had written out. Whenever it is there, what it speaks of was on
the disk before it.

A line of 30 bytes, replaced in place: the offset, 20 digits, and the CRC-32C of those, 8 hex
digits. One that is missing or damaged vouches for nothing. Kafka passes over files of this name.
"""

from contextlib import suppress

from protocol.checksum import crc32c
from storage.env import File
from storage.errors import DiskError, FileMissing
from storage.files.layout import SYNCED_MARK
from storage.files.partition_files import PartitionFiles


def save(files: PartitionFiles, offset: int) -> None:
    """Notes that offsets below `offset` are on the disk. Never fails: without a mark less is known.

    The file is of the pool: to open it each time would cost more than the line.
    """
    with suppress(DiskError):
        _file(files).write_at(0, encode(offset))


def _file(files: PartitionFiles) -> File:
    path = _path(files.path)
    try:
        return files.opened(path)
    except FileMissing:
        file = files.fs.open(path, create=True)
        files.keep(file)
        return file


def _path(directory: str) -> str:
    return f"{directory}/{SYNCED_MARK}"


def forget(files: PartitionFiles) -> None:
    """A log is made or opened: the open file may be of another one, that had its path before."""
    files.forget(_path(files.path))


def load(files: PartitionFiles) -> int:
    """The offset, 0 when nothing sound says so. DiskError."""
    try:
        data = files.fs.read_bytes(_path(files.path))
    except FileMissing:
        return 0
    digits = data[:20]
    offset = int(digits) if digits.isdigit() else 0
    return offset if data == encode(offset) else 0


def encode(offset: int) -> bytes:
    """The bytes of a mark."""
    digits = b"%020d" % offset
    return digits + b" %08x\n" % crc32c(digits)
