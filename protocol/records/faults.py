# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""The bad records of a refused batch, listed: which, and what Produce answers of each (KIP-467).

Like `walk`, written once and run compiled or as it stands. A fault takes three numbers: index in
the batch, time (ms), verdict of `mistimed`. A list of ten thousand becomes the bytes of an answer
in one go; no object is made for one. Room for it is seen to, and that the rows and the texts are
sound, before the first byte is written: Cython's own bounds checks are off after that.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import cython

if cython.compiled:
    from cython.cimports.protocol.records.decimals import digits_of, put_digits
    from cython.cimports.protocol.records.numbers import put_bytes, put_int32, put_varint
else:
    from protocol.records.decimals import digits_of, put_digits
    from protocol.records.numbers import put_bytes, put_int32, put_varint

COLUMNS = 3
EIGHT = cython.declare(cython.Py_ssize_t, 8)  # numbers of an outline's row
ENTRY_BYTES = cython.declare(cython.Py_ssize_t, 32)  # index, length, digits, tags


class FaultTexts(NamedTuple):
    """Parts of a fault's text: `lead`, the time, and its verdict's entry in `tails`.

    A verdict of `timeless` or above has no lead and no time, and the last entry. ASCII only.
    """

    lead: bytes
    tails: bytes
    tail_ends: array[int]
    timeless: int


def texts_of(lead: str, tails: Sequence[str], timeless: str) -> FaultTexts:
    """The texts by verdict, from verdict 0 on, and the one for verdicts that are above those."""
    parts = [text.encode("ascii") for text in (*tails, timeless)]
    ends = array("q", [0])
    ends.extend(accumulate(map(len, parts)))
    return FaultTexts(lead.encode("ascii"), b"".join(parts), ends, len(tails))


@cython.boundscheck(True)
def collect_faults(  # noqa: PLR0917 - called by position, a chunk at a time
    outline: cython.const[cython.longlong][::1],
    first: cython.longlong,
    count: cython.Py_ssize_t,
    verdicts: cython.const[cython.uchar][::1],
    bad_verdicts: cython.int,
    timeless: cython.int,
) -> array[int]:
    """The faults among `count` records, the first of which has the index `first` in its batch.

    Faults are the verdicts from 1 to below `bad_verdicts`, and those from `timeless` on.
    """
    index: cython.Py_ssize_t
    found: cython.Py_ssize_t = 0
    verdict: cython.int
    for index in range(count):
        verdict = verdicts[index]
        found += 0 < verdict < bad_verdicts or verdict >= timeless
    rows = array("q", bytes(24 * found))
    out: cython.longlong[::1] = rows
    found = 0
    for index in range(count):
        verdict = verdicts[index]
        if 0 < verdict < bad_verdicts or verdict >= timeless:
            out[found] = first + index
            out[found + 1] = outline[index * EIGHT + 6]
            out[found + 2] = verdict
            found += 3
    return rows


def encode_faults(
    rows: cython.const[cython.longlong][::1], texts: FaultTexts, compact: cython.bint
) -> memoryview:
    """The elements of an array of (index, text) on the wire; `compact` for flexible versions.
    Raises ValueError.
    """
    lead: cython.const[cython.uchar][::1] = texts.lead
    tails: cython.const[cython.uchar][::1] = texts.tails
    ends: cython.const[cython.longlong][::1] = texts.tail_ends
    timeless: cython.Py_ssize_t = texts.timeless
    to: cython.Py_ssize_t = room(rows, ends, timeless, len(lead), len(tails))
    if to < 0:
        raise ValueError("no rows of faults, or no texts for them")
    result = bytearray(to)
    out: cython.uchar[::1] = result
    digits: cython.longlong = 0
    to = 0
    at: cython.Py_ssize_t
    verdict: cython.Py_ssize_t
    size: cython.longlong
    for at in range(0, len(rows), 3):
        verdict = min(timeless, rows[at + 2])
        size = ends[verdict + 1] - ends[verdict]
        if verdict < timeless:
            digits = digits_of(rows[at + 1])
            size += len(lead) + digits
        to = put_int32(out, to, rows[at])
        to = put_length(out, to, size, compact)
        if verdict < timeless:
            to = put_bytes(out, to, lead, 0, len(lead))
            to = put_digits(out, to, rows[at + 1], digits)
        to = put_bytes(out, to, tails, ends[verdict], ends[verdict + 1])
        if compact:
            out[to] = 0  # no tagged fields
            to += 1
    return memoryview(result)[:to]


def text_of(timestamp: int, verdict: int, texts: FaultTexts) -> str:
    """The text of one fault."""
    entry = min(texts.timeless, verdict)
    tail = texts.tails[texts.tail_ends[entry] : texts.tail_ends[entry + 1]].decode("ascii")
    return tail if entry == texts.timeless else f"{texts.lead.decode('ascii')}{timestamp}{tail}"


@cython.cfunc
@cython.exceptval(check=False)
def room(
    rows: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    timeless: cython.Py_ssize_t,
    lead_size: cython.Py_ssize_t,
    tails_size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Give the most that the faults may take; -1 when a row or the text for it is no such thing."""
    total: cython.Py_ssize_t = 0
    at: cython.Py_ssize_t
    verdict: cython.Py_ssize_t
    if len(rows) % 3 or timeless < 0 or len(ends) < timeless + 2:
        return -1
    for at in range(0, len(rows), 3):
        verdict = min(timeless, rows[at + 2])
        if verdict < 0 or not 0 <= ends[verdict] <= ends[verdict + 1] <= tails_size:
            return -1
        total += ENTRY_BYTES + lead_size + ends[verdict + 1] - ends[verdict]
    return total


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_length(
    out: cython.uchar[::1], to: cython.Py_ssize_t, size: cython.longlong, compact: cython.bint
) -> cython.Py_ssize_t:
    """Write the length of a string: an int16, or a varint of one more; where it ends."""
    if not compact:
        out[to] = (size >> 8) & 255
        out[to + 1] = size & 255
        return to + 2
    return put_varint(out, to, size + 1)
