"""Legal names of topics: Kafka's rules.

They keep paths safe, too: a legal name has no separator and is neither `.` nor `..`.
"""

import re

MAX_NAME_CHARACTERS = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)


def fault_in_name(name: str) -> str | None:
    """The fault of a topic's name, in Kafka's words; None when it is legal."""
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"the length of '{name[:40]}...' is longer than the max allowed length 249"
    if not _LEGAL.fullmatch(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
