"""A range of a log read as messages of format 0 or 1, for clients that know no other.

Works through a `FileSlice` in steps of bounded size, each of which a lane may run; between steps
memory has only the converted messages. Damaged bytes are not passed on with a fresh checksum: the
range ends before it, or, if it stands first, has the error. Rules: semantics.md 7.5.
"""

from enum import Enum

from protocol.errors import DecodeError, ErrorCode, KafkaError
from protocol.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_matches,
    iter_headers,
    read_header,
)
from protocol.records.compression import UnknownCodec
from protocol.records.old_formats.convert import down_convert
from storage.files.file_slice import FileSlice

STEP_BYTES = 64 * 1024


class Oversize(Enum):
    """Treatment of a first message that is larger than the room."""

    CUT = "cut"
    """It comes cut off, so that the client sees its size and asks for more (Fetch 0 to 2)."""
    WHOLE = "whole"
    """It comes all the same (KIP-74)."""
    NOTHING = "nothing"
    """It waits for the next fetch."""


class OldReader:
    """Converts one slice; call `step` until `is_done`, then take `messages`."""

    __slots__ = (
        "_consumed",
        "_from_offset",
        "_limit_bytes",
        "_magic",
        "_oversize",
        "_part",
        "_room",
        "is_done",
        "messages",
        "next_offset",
        "unpacked_bytes",
    )

    def __init__(
        self,
        part: FileSlice,
        magic: int,
        *,
        from_offset: int,
        room: int,
        oversize: Oversize,
        limit_bytes: int,
    ) -> None:
        """Messages of format `magic` from `from_offset` on, `room` bytes at most.

        No batch may unpack to more than `limit_bytes`.
        """
        self._part = part
        self._magic = magic
        self._from_offset = from_offset
        self._room = room
        self._oversize = oversize
        self._limit_bytes = limit_bytes
        self._consumed = 0
        self.messages = bytearray()
        self.is_done = False
        self.unpacked_bytes = 0
        """Of the records that were gone through so far."""
        self.next_offset = from_offset
        """Next offset to read when the slice gave no message, as one of markers only does."""

    def step(self) -> None:
        """Converts the batches of the next STEP_BYTES, one at least.

        KafkaError for a first batch that has no old form (76) or is damaged (2). DiskError.
        """
        try:
            self._convert(self._next_batches())
        except DecodeError as error:
            if not self.messages:
                is_foreign = isinstance(error, UnknownCodec)
                code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE if is_foreign else None
                raise KafkaError(code or ErrorCode.CORRUPT_MESSAGE, str(error)) from None
            self.is_done = True

    def _next_batches(self) -> memoryview:
        """Whole batches, but perhaps the last; at the slice's end perhaps none."""
        file, start = self._part.file, self._part.position + self._consumed
        left = self._part.size - self._consumed
        data = memoryview(file.read_at(start, min(left, STEP_BYTES)))
        if len(data) >= HEADER_BYTES:
            size = read_header(data).size_bytes
            if len(data) < size <= left:
                data = memoryview(file.read_at(start, size))
        return data

    def _convert(self, data: memoryview) -> None:
        end = 0
        for position, header in iter_headers(data):
            end = position + header.size_bytes
            self._add(data[position:end], header)
            if self.is_done:
                return
            self.next_offset = header.last_offset + 1
        self._consumed += end
        self.is_done = end == 0

    def _add(self, batch: memoryview, header: BatchHeader) -> None:
        if not crc_matches(batch, 0, header):
            raise CorruptBatch(f"the batch at offset {header.base_offset} has a wrong CRC")
        room = self._room - len(self.messages)
        messages, is_whole, unpacked_bytes = down_convert(
            batch,
            header,
            self._magic,
            from_offset=self._from_offset,
            room=room,
            limit_bytes=self._limit_bytes,
        )
        self.unpacked_bytes += unpacked_bytes
        if len(messages) > room:
            is_whole = False
            if self.messages or self._oversize is Oversize.NOTHING:
                messages.clear()
            elif self._oversize is Oversize.CUT:
                del messages[max(0, room) :]
        self.messages += messages
        self.is_done = not is_whole
