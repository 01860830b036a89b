"""Numbers of numpy as Arrow arrays and back, over the same memory.

Arrow's own conversions load pandas where it is installed, a third of a second at every start.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

Mask = np.ndarray[Any, np.dtype[np.bool_]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]
AnyNumbers = np.ndarray[Any, np.dtype[Any]]


def array_of(numbers: AnyNumbers, kind: pa.DataType, is_there: Mask | None = None) -> pa.Array:
    """The numbers in memory, without a copy, as an array of `kind`; null where `is_there` says no.

    ValueError when a number is not as wide as `kind`.
    """
    if numbers.itemsize * 8 != kind.bit_width:
        raise ValueError(f"{numbers.dtype} is not as wide as {kind}")
    content = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(kind, len(numbers), [bitmap(is_there), content])


def numbers_of(array: pa.Array) -> Numbers:
    """The array's 64-bit numbers. ValueError when there are nulls, or they are not as wide."""
    if array.null_count:
        raise ValueError(f"{array.null_count} of the numbers are null")
    return _stored(array)[array.offset :]


def derived(
    array: pa.Array, change: Callable[[Numbers], AnyNumbers], kind: pa.DataType
) -> pa.Array:
    """Applies `change` to an array's 64-bit numbers; nulls stay null. ValueError."""
    made = np.ascontiguousarray(change(_stored(array)))
    content = [array.buffers()[0], pa.py_buffer(made)]
    return pa.Array.from_buffers(kind, len(array), content, array.null_count, array.offset)


def mask_of(mask: Mask) -> pa.Array:
    """An array of booleans."""
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def bitmap(is_there: Mask | None) -> pa.Buffer | None:
    """Arrow's bits for what is there and what is null; None when all is there."""
    return None if is_there is None or is_there.all() else _bits(is_there)


def repeated(value: str | int | None, kind: pa.DataType, count: int) -> pa.Array:
    """The same value so many times: text, a number, or null."""
    if value is None:
        return pa.nulls(count, kind)
    if isinstance(value, int):
        return array_of(np.full(count, value, f"i{kind.bit_width // 8}"), kind)
    text = value.encode()
    ends = np.arange(count + 1, dtype=np.int32) * len(text)
    return pa.Array.from_buffers(
        kind, count, [None, pa.py_buffer(ends), pa.py_buffer(text * count)]
    )


def _stored(array: pa.Array) -> Numbers:
    """The whole buffer from its begin, with arbitrary values in place of nulls."""
    if array.type.bit_width != 64:
        raise ValueError(f"{array.type} is not 64 bits wide")
    content = array.buffers()[1]
    if content is None or not content.size:
        return np.empty(0, np.int64)
    return np.frombuffer(content, np.int64, array.offset + len(array))


def _bits(mask: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(mask, bitorder="little"))
