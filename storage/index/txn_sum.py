"""`<base>.txnsum`: the checksum of a segment's index of aborted transactions.

The index is Kafka's format and has no room for one; a changed bit in it can be consistent and would
hide committed records, or show aborted ones. Six bytes, big-endian: int16 version 0, uint32 CRC-32C
of the `.txnindex`. Written after the index at each sync of it, so a file that does not match means
that the index is rebuilt from the log; an index without such a file, as Kafka leaves it, is
believed. Kafka passes over files of this name.
"""

from struct import Struct

from protocol.checksum import crc32c
from storage.env import FileSystem
from storage.errors import CorruptIndex, FileMissing
from storage.files.layout import TXN_INDEX, TXN_SUM

VERSION = 0
_SUM = Struct(">hI")


def check(fs: FileSystem, index_path: str, data: bytes) -> None:
    """CorruptIndex unless there is no checksum, or that of `data`, the whole index."""
    stored = _stored(fs, index_path)
    if stored is not None and stored != _packed(crc32c(data)):
        raise CorruptIndex(index_path, f"{len(data)} bytes of another checksum")


def check_beside_writer(fs: FileSystem, index_path: str, data: bytes, entry_bytes: int) -> None:
    """As `check`, but entries that were written since the last sync may follow those it covers.
    Raises CorruptIndex.
    """
    stored = _stored(fs, index_path)
    if stored is None or stored == _packed(crc32c(data)):
        return
    covered = 0
    for at in range(0, len(data) + 1, entry_bytes):
        if stored == _packed(covered):
            return
        covered = crc32c(data[at : at + entry_bytes], covered)
    raise CorruptIndex(index_path, f"no entries of its {len(data)} bytes have its checksum")


def _stored(fs: FileSystem, index_path: str) -> bytes | None:
    try:
        return fs.read_bytes(path_beside(index_path))
    except FileMissing:
        return None


def _packed(value: int) -> bytes:
    return _SUM.pack(VERSION, value)


def save(fs: FileSystem, index_path: str, data: bytes) -> None:
    """Make the checksum of `data` durable (its name: the caller's). DiskError."""
    file = fs.open(path_beside(index_path), create=True)
    try:
        file.truncate(_SUM.size)
        file.write_at(0, _packed(crc32c(data)))
        file.sync()
    finally:
        file.close()


def remove(fs: FileSystem, index_path: str) -> None:
    """There is no index any more. DiskError."""
    try:
        fs.remove(path_beside(index_path))
    except FileMissing:
        return


def path_beside(index_path: str) -> str:
    """Path of the checksum, whatever the index's name ends with (`.cleaned`)."""
    head, _, ending = index_path.rpartition(TXN_INDEX)
    return f"{head}{TXN_SUM}{ending}"
