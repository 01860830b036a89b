"""A message of format 0 or 1 as rows of a dump: itself, or those in it (semantics.md 7.1)."""

from collections.abc import Iterator

from protocol.records.compression import DEFAULT_LIMIT_BYTES, Codec
from protocol.records.old_formats import legacy
from storage.dump.rows import Row, Value, stamp


def message_rows(data: memoryview, *, contents: bool) -> Iterator[Row]:
    """Each message with its final offset; DecodeError at the first one that is wrong."""
    magic, codec = legacy.read_facts(data)
    wrapper_attributes = data[legacy.MAGIC_POSITION + 1]
    crcs = _crcs(data, magic, codec)
    for message, crc in zip(legacy.read_messages(data), crcs, strict=True):
        fields: dict[str, Value] = {
            "offset": message.offset,
            "timestamp": stamp(wrapper_attributes, magic, message.timestamp),
            "keySize": -1 if message.key is None else len(message.key),
            "valueSize": -1 if message.value is None else len(message.value),
            "isValid": True,
            "crc": crc,
        }
        if contents:
            fields["key"] = None if message.key is None else bytes(message.key)
            fields["payload"] = None if message.value is None else bytes(message.value)
        yield Row("record", fields)


def _crcs(data: memoryview, magic: int, codec: Codec) -> Iterator[int]:
    """Stated CRC of each message; the reader of the message checks it."""
    if codec is not Codec.NONE:
        _, inner = legacy.unwrap(data, magic, codec, DEFAULT_LIMIT_BYTES)
        data = memoryview(inner)
    position = 0
    while position + legacy.HEAD.size <= len(data):
        _, size, crc, _, _ = legacy.HEAD.unpack_from(data, position)
        yield crc
        position += legacy.OFFSET_AND_SIZE_BYTES + size
