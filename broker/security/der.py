"""Certificates in DER (X.690, RFC 5280), as far as the broker looks into them.

Values have a tag and a definite length; anything else, and a length beyond the end, is a
ValueError.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

SEQUENCE, OID, OCTETS = 0x30, 0x06, 0x04
_VERSION, _EXTENSIONS = 0xA0, 0xA3
_UTC_TIME, _GENERAL_TIME = 0x17, 0x18
_ALT_NAMES = bytes((0x55, 0x1D, 0x11))  # 2.5.29.17


class Value(NamedTuple):
    """One value: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    whole: bytes


class Certificate(NamedTuple):
    """A certificate: `subject` and `alt_names` (empty without any) are DER."""

    not_before_ms: int
    not_after_ms: int
    subject: bytes
    alt_names: bytes

    @property
    def alternatives(self) -> frozenset[bytes]:
        """Its alternative names, each in DER. Raises ValueError."""
        return frozenset(
            each.whole for names in values(self.alt_names) for each in values(names.content)
        )


def values(data: bytes) -> Iterator[Value]:
    """The values that follow one another in `data`. Raises ValueError."""
    at = 0
    while at < len(data):
        tag, start, end = _head(data, at)
        yield Value(tag, data[start:end], data[at:end])
        at = end


def read_certificate(der: bytes) -> Certificate:
    """ValueError when it is none."""
    (outer,) = values(der)
    signed, *_ = values(outer.content)
    parts = list(values(signed.content))
    if parts and parts[0].tag == _VERSION:
        del parts[0]
    if len(parts) < 6:
        raise ValueError("a certificate has a serial number, names, times and a key")
    begins, ends = values(parts[3].content)
    extensions = next((each for each in parts if each.tag == _EXTENSIONS), None)
    return Certificate(
        _time_ms(begins),
        _time_ms(ends),
        parts[4].whole,
        b"" if extensions is None else _alt_names(extensions.content),
    )


def _alt_names(extensions: bytes) -> bytes:
    (listed,) = values(extensions)
    for extension in values(listed.content):
        oid, *rest = values(extension.content)
        if oid.tag == OID and oid.content == _ALT_NAMES and rest:
            return rest[-1].content
    return b""


def _time_ms(value: Value) -> int:
    text = value.content.decode("ascii")
    if value.tag == _UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    elif value.tag != _GENERAL_TIME:
        raise ValueError(f"a time has tag {value.tag}")
    if len(text) != 15 or text[-1] != "Z" or not text[:-1].isdigit():
        raise ValueError(f"{text!r} is no time of a certificate")
    year, fields = int(text[:4]), [int(text[at : at + 2]) for at in range(4, 14, 2)]
    month, day, hour, minute, second = fields
    found = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    return int(found.timestamp()) * 1000


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """Tag, begin and end of the content of the value that begins at `at`."""
    if len(data) - at < 2:
        raise ValueError("a value is cut off")
    tag, size, start = data[at], data[at + 1], at + 2
    if size & 0x80:
        more = size & 0x7F
        if not 1 <= more <= 4:
            raise ValueError("a length has no definite form")
        size, start = int.from_bytes(data[start : start + more]), start + more
    if start + size > len(data):
        raise ValueError("a value is longer than what holds it")
    return tag, start, start + size
