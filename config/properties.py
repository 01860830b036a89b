"""Reads the text of a Java properties file (`server.properties`): pure, no files.

Rules of java.util.Properties: `#` and `!` begin comments; the key ends at the first unescaped `=`,
`:` or blank; a line that ends in an odd number of backslashes goes on in the next one, whose
leading blanks are dropped; `\\t`, `\\n`, `\\r`, `\\f` and `\\uXXXX` are escapes, and any other
escaped character stands for itself.
"""

import re
from collections.abc import Iterator

_BLANKS = " \t\f"
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(text: str) -> Iterator[tuple[str, str, int]]:
    """Each key, its value and the number of the line it begins on, from 1.

    Raises ValueError, beginning with `line N:`, for a broken `\\u` escape.
    """
    for number, line in _logical_lines(text):
        end = _end_of_key(line)
        rest = line[end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        yield _unescaped(line[:end], number), _unescaped(rest, number), number


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and empty ones, continuations joined."""
    pending, begun = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(_BLANKS)
        if not begun and line[:1] in ("", "#", "!"):
            continue
        begun = begun or number
        if _goes_on(line):
            pending += line[:-1]
            continue
        yield begun, pending + line
        pending, begun = "", 0
    if begun and pending:
        yield begun, pending


def _goes_on(line: str) -> bool:
    backslashes = len(line) - len(line.rstrip("\\"))
    return backslashes % 2 == 1


def _end_of_key(line: str) -> int:
    position = 0
    while position < len(line):
        if line[position] == "\\":
            position += 2
            continue
        if line[position] in "=:" + _BLANKS:
            return position
        position += 1
    return len(line)


def _unescaped(text: str, number: int) -> str:
    def meant(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] != "u":
            return _CONTROL.get(escape, escape)
        if len(escape) == 1:
            raise ValueError(f"line {number}: \\u needs four hexadecimal digits")
        return chr(int(escape[1:], 16))

    result = _ESCAPE.sub(meant, text)
    if result.isascii():
        return result
    try:  # characters beyond the first plane are written as two escapes
        return result.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise ValueError(f"line {number}: half of a character is missing") from error
