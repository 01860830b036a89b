"""Bytes to messages and back: the fast codec, and the interpreted one it is proven against.

For a (message, version) the construct Struct is walked once, on first use, and flat Python source
is written, compiled and kept. `interpret` and `build` run the Struct itself: same results, ten
times slower, for tests and tools.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, TypeVar, cast

from construct import ConstructError

from protocol.errors import DecodeError
from protocol.reader_source import ReaderSource
from protocol.schema import struct_of
from protocol.wire import Buffer, object_budget
from protocol.writer_source import WriterSource

M = TypeVar("M")
Reader = Callable[[Buffer, int], Any]
Writer = Callable[[Any], list[Any]]

_readers: dict[tuple[type, int, bool], Reader] = {}
_writers: dict[tuple[type, int], Writer] = {}


def decode(cls: type[M], version: int, data: Buffer, position: int = 0) -> M:
    """Read a message that takes all of `data` from `position`.

    Payloads of records come out as slices of `data`, which has to be a memoryview for that.
    Raises DecodeError for anything damaged, truncated, too long or over a limit.
    """
    read = _readers.get((cls, version, True)) or reader(cls, version)
    return cast("M", read(data, position))


def encode(message: object, version: int) -> list[Any]:
    """Write a message: the parts in order, everything joined except payloads of records.

    A payload is any buffer, or any object with a length, and passes through untouched. A value
    that its field cannot hold is a bug of the caller: TypeError, AttributeError or struct.error.
    """
    cls = type(message)
    write = _writers.get((cls, version)) or writer(cls, version)
    return write(message)


def encode_bytes(message: object, version: int) -> bytes:
    """Write a message into one piece; payloads of records have to be buffers."""
    return b"".join(encode(message, version))


def reader(cls: type, version: int, *, exact: bool = True) -> Reader:
    """Return the function `read(data, position)` of a message in a version.

    Without `exact` it leaves what follows the message alone. Kafka reads requests so, and clients
    count on it: librdkafka 2.16 asks for all topics with three bytes to spare (Metadata v9 up).
    """
    if (cls, version, exact) not in _readers:
        source = ReaderSource(struct_of(cls, version), exact=exact)
        _readers[cls, version, exact] = compiled("read", source, cls, version)
    return _readers[cls, version, exact]


def writer(cls: type, version: int) -> Writer:
    """Return the function `write(message)` of a message in a version."""
    if (cls, version) not in _writers:
        source = WriterSource(struct_of(cls, version))
        _writers[cls, version] = compiled("write", source, cls, version)
    return _writers[cls, version]


def compiled(name: str, source: ReaderSource | WriterSource, cls: type, version: int) -> Any:
    """Compile generated source and take one function out of it."""
    text = source.source()
    exec(compile(text, f"<{name} {cls.__name__} v{version}>", "exec"), source.names)  # noqa: S102
    return source.names[name]


def interpret(cls: type[M], version: int, data: Buffer, position: int = 0) -> M:
    """Read a message with the Struct itself; same promises as `decode`. Raises DecodeError."""
    stream = io.BytesIO(bytes(data)[position:])
    try:
        message = struct_of(cls, version).parse_stream(
            stream, objects_left=object_budget(len(data))
        )
    except ConstructError as error:
        raise DecodeError(f"{cls.__name__}: {error}") from None
    if rest := stream.read():
        raise DecodeError(f"{cls.__name__}: {len(rest)} bytes too many")
    return cast("M", message)


def build(message: object, version: int) -> bytes:
    """Write a message with the Struct itself."""
    return cast("bytes", struct_of(type(message), version).build(message))
