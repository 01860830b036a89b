"""Names of users by the subjects of their certificates: `ssl.principal.mapping.rules` (KIP-371).

Rules are separated by commas: `DEFAULT` takes the subject as it is, `RULE:pattern/replacement/` one
that the pattern matches as a whole, with L or U behind it in small letters or capitals. The first
one that matches counts. Patterns are those that Java and Python read alike; others are refused.
"""

import re
from collections.abc import Callable

_RULE = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)"
_SPLITTER = re.compile(rf"\s*(?:{_RULE})\s*(?:,\s*|$)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SHARED_ESCAPES = set("dDwWsSbBnrtfxu123456789")
_CLASS = re.compile(r"\[\^?\]?((?:\\.|[^\]\\])*)\]", re.DOTALL)
_GROUP = re.compile(r"\(\?(?!:|=|!|<=|<!|i\))")
_PART = re.compile(r"\\(.)|\$(\d+)|([$\\])", re.DOTALL)

Rule = Callable[[str], str | None]


class MappingRules:
    """The rules of one listener."""

    def __init__(self, text: str) -> None:
        """ValueError naming what cannot be read."""
        self._rules = list(_rules(text.strip()))

    def name_of(self, dn: str) -> str:
        """The user's name. ValueError when no rule matches."""
        for rule in self._rules:
            name = rule(dn)
            if name is not None:
                return name
        raise ValueError(f"no rule of ssl.principal.mapping.rules matches {dn}")


def _rules(text: str) -> list[Rule]:
    found: list[Rule] = []
    at = 0
    while at < len(text):
        match = _SPLITTER.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(f"{text[at:]!r} is no rule: DEFAULT, or RULE:pattern/replacement/")
        at = match.end()
        found.append(str if match[1] else _rule(match[2], match[3], match[4]))
    if not found:
        raise ValueError("there is no rule: DEFAULT, or RULE:pattern/replacement/")
    return found


def _rule(pattern: str, replacement: str, case: str) -> Rule:
    compiled = _compiled(pattern)
    parts = _parts(replacement, compiled.groups)

    def expand(match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in parts)

    def rule(dn: str) -> str | None:
        if compiled.fullmatch(dn) is None:
            return None
        name = compiled.sub(expand, dn)
        return name.lower() if case == "L" else name.upper() if case == "U" else name

    return rule


def _compiled(pattern: str) -> re.Pattern[str]:
    for escape in _ESCAPE.findall(pattern):
        if escape.isalnum() and escape not in _SHARED_ESCAPES:
            raise ValueError(f"{pattern!r}: \\{escape} is not read alike by Java and Python")
    inside = [each for each in _CLASS.findall(pattern) if "[" in each or "&&" in each]
    if inside or _GROUP.search(pattern) or "{," in pattern:
        raise ValueError(f"{pattern!r} is not read alike by Java and Python")
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"{pattern!r} is no pattern: {error}") from error


def _parts(replacement: str, groups: int) -> list[str | int]:
    """Text and numbers of groups; a number beyond the last group is text, as in Kafka."""
    parts: list[str | int] = []
    at = 0
    for match in _PART.finditer(replacement):
        parts.append(replacement[at : match.start()])
        at = match.end()
        if match[3]:
            raise ValueError(f"{replacement!r}: {match[3]} stands for nothing")
        parts += [match[1]] if match[1] else _group(match[2], groups)
    return [*parts, replacement[at:]]


def _group(digits: str, groups: int) -> list[str | int]:
    """As many digits as name a group, and the rest as text."""
    for size in range(len(digits), 0, -1):
        if int(digits[:size]) <= groups:
            return [int(digits[:size]), digits[size:]]
    return [f"${digits}"]
