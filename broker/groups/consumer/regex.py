"""Regular expressions that members subscribe by, matched in linear time (KIP-848, RE2's rules).

An expression comes from a client, so it must not be able to hold the broker up: see `automaton.py`.
The whole name of a topic has to match. Known: characters, `.`, classes with ranges and names
(`[[:alpha:]]`), `\\d \\w \\s` and their opposites, `\\Q...\\E`, groups (also named, not capturing,
with the flags `i` and `s`), `|`, `* + ?` and `{n,m}` (also lazy), `^ $ \\A \\z`.

Not `google-re2`: it has no wheels for musl (1.1.20251105), and its source needs a C++ compiler and
Abseil, while Horolog installs where there is no compiler.
"""

import string
from collections.abc import Iterable

from broker.groups.consumer.automaton import (
    END,
    START,
    Accepts,
    Automaton,
    Matcher,
    PatternError,
    PatternPart,
)

MAX_CHARACTERS = 1000
MAX_REPEATS = 1000
MAX_DEPTH = 50
VISITS_AT_LEAST, VISITS_OF_A_NAME = 250_000, 200  # of states; all of a million take 0.2 s

DIGITS = frozenset(string.digits)
WORD = frozenset(string.ascii_letters + string.digits + "_")
SPACES = frozenset("\t\n\f\r ")
_CLASSES = {"d": DIGITS, "w": WORD, "s": SPACES}
_NAMED = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "digit": DIGITS,
    "lower": frozenset(string.ascii_lowercase),
    "upper": frozenset(string.ascii_uppercase),
    "punct": frozenset(string.punctuation),
    "space": SPACES | {"\v"},
    "word": WORD,
    "xdigit": frozenset(string.hexdigits),
}
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "v": "\v"}


class _Parser:
    """Reads an expression and builds its automaton (Thompson's construction)."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_CHARACTERS:
            raise PatternError(f"longer than {MAX_CHARACTERS} characters")
        self.text, self.at = text, 0
        self.ignores_case = self.dot_is_all = False
        self.automaton = Automaton()

    def parse(self) -> PatternPart:
        part = self._either(0)
        if self.at < len(self.text):
            raise self._wrong("a ) without its (")
        return part

    def _wrong(self, what: str) -> PatternError:
        return PatternError(f"{what}, at character {self.at + 1} of {self.text!r}")

    def _peek(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def _take(self, text: str) -> bool:
        if not self._peek(text):
            return False
        self.at += len(text)
        return True

    def _next(self) -> str:
        if self.at >= len(self.text):
            raise self._wrong("the expression ends too soon")
        self.at += 1
        return self.text[self.at - 1]

    # --- the grammar ---

    def _either(self, depth: int) -> PatternPart:
        if depth > MAX_DEPTH:
            raise self._wrong("groups are nested too deeply")
        branches = [self._sequence(depth)]
        while self._take("|"):
            branches.append(self._sequence(depth))
        return branches[0] if len(branches) == 1 else self.automaton.either(branches)

    def _sequence(self, depth: int) -> PatternPart:
        parts = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self._repeated(depth))
        return self.automaton.chain(parts)

    def _repeated(self, depth: int) -> PatternPart:
        begin = len(self.automaton.steps)
        part = self._atom(depth)
        end = len(self.automaton.steps)
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")  # lazy: what matches is the same
        if self.at < len(self.text) and self.text[self.at] in "*+?":
            raise self._wrong("nothing to repeat")
        return self._copies(part, bounds, begin, end)

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        close = self.text.find("}", self.at)
        if not self._peek("{") or close < 0:
            return None
        low, comma, high = self.text[self.at + 1 : close].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None  # an ordinary brace, as RE2 has it
        self.at = close + 1
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_REPEATS or (most is not None and most < least):
            raise self._wrong("a bad number of repetitions")
        return least, most

    def _copies(
        self, part: PatternPart, bounds: tuple[int, int | None], begin: int, end: int
    ) -> PatternPart:
        """As many copies as are needed, the last ones optional, or the last one in a loop.

        The part has the states from `begin` up to `end`.
        """
        least, most = bounds
        if most is None:
            copies, loops = max(least, 1), True
        else:
            copies, loops = most, False
        others = [self.automaton.copy(part, begin, end) for _ in range(1, copies)]
        pieces = [part, *others] if copies else []
        return self.automaton.repeated(pieces, least, for_ever=loops)

    def _atom(self, depth: int) -> PatternPart:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return self.automaton.one(self._class())
            case ".":
                return self.automaton.one(self._any())
            case "^":
                return self.automaton.anchor(START)
            case "$":
                return self.automaton.anchor(END)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                self.at -= 1
                raise self._wrong("nothing to repeat")
            case _:
                return self._literal(character)

    def _group(self, depth: int) -> PatternPart:
        flags = self.ignores_case, self.dot_is_all
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                while self._next() != ">":
                    pass
            elif self._flags():
                return self.automaton.nothing()  # (?i): from here on
        part = self._either(depth + 1)
        if not self._take(")"):
            raise self._wrong("a ( without its )")
        self.ignores_case, self.dot_is_all = flags
        return part

    def _flags(self) -> bool:
        """Reads flags; whether they hold from here on, not in a group of their own."""
        value = True
        while (character := self._next()) not in ":)":
            match character:
                case "-":
                    value = False
                case "i":
                    self.ignores_case = value
                case "s":
                    self.dot_is_all = value
                case "m" | "U":
                    pass  # names of topics have one line, and laziness changes no match
                case _:
                    raise self._wrong("an unknown kind of group")
        return character == ")"

    def _class(self) -> Accepts:
        negated = self._take("^")
        chosen: set[str] = set()
        others: list[frozenset[str]] = []
        ranges: list[tuple[str, str]] = []
        is_first = True
        while is_first or not self._peek("]"):
            is_first = False
            self._class_item(chosen, others, ranges)
        self.at += 1
        return self._accepting(frozenset(chosen), tuple(others), tuple(ranges), negated=negated)

    def _class_item(
        self, chosen: set[str], others: list[frozenset[str]], ranges: list[tuple[str, str]]
    ) -> None:
        """`others` holds what must not be there: `\\D` in a class."""
        if self._take("[:"):
            close = self.text.find(":]", self.at)
            named = _NAMED.get(self.text[self.at : close]) if close >= 0 else None
            if named is None:
                raise self._wrong("an unknown class of characters")
            self.at = close + 2
            chosen.update(named)
            return
        low = self._next()
        if low == "\\":
            low = self._next()
            if low in _CLASSES:
                chosen.update(_CLASSES[low])
                return
            if low.lower() in _CLASSES:
                others.append(_CLASSES[low.lower()])
                return
            low = self._escaped(low)
        if not self._peek("-") or self._peek("-]"):
            chosen.add(low)
            return
        self.at += 1
        high = self._next()
        if high == "\\":
            high = self._escaped(self._next())
        if high < low:
            raise self._wrong("a range of characters that runs backwards")
        ranges.append((low, high))

    def _accepting(
        self,
        chosen: frozenset[str],
        others: tuple[frozenset[str], ...],
        ranges: tuple[tuple[str, str], ...],
        *,
        negated: bool,
    ) -> Accepts:
        def has(character: str) -> bool:
            return (
                character in chosen
                or any(character not in each for each in others)
                or any(low <= character <= high for low, high in ranges)
            )

        if not self.ignores_case:
            return lambda character: has(character) is not negated
        return lambda character: any(map(has, {character.lower(), character.upper()})) != negated

    def _any(self) -> Accepts:
        if self.dot_is_all:
            return lambda _: True
        return lambda character: character != "\n"

    def _escape(self) -> PatternPart:
        character = self._next()
        if character == "A":
            return self.automaton.anchor(START)
        if character == "z":
            return self.automaton.anchor(END)
        if character in _CLASSES:
            known = _CLASSES[character]
            return self.automaton.one(lambda each: each in known)
        if character.lower() in _CLASSES:
            unknown = _CLASSES[character.lower()]
            return self.automaton.one(lambda each: each not in unknown)
        if character == "Q":
            return self._quoted()
        return self._literal(self._escaped(character))

    def _quoted(self) -> PatternPart:
        close = self.text.find("\\E", self.at)
        text = self.text[self.at : close if close >= 0 else len(self.text)]
        self.at += len(text) + (2 if close >= 0 else 0)
        return self.automaton.chain(map(self._literal, text))

    def _escaped(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "x":
            digits = self._next() + self._next()
            if not set(digits) <= _NAMED["xdigit"]:
                raise self._wrong("a bad character code")
            return chr(int(digits, 16))
        if character.isalnum():
            raise self._wrong(f"an unknown escape \\{character}")
        return character

    # --- pieces ---

    def _literal(self, wanted: str) -> PatternPart:
        if self.ignores_case:
            folded = wanted.lower()
            return self.automaton.one(lambda character: character.lower() == folded)
        return self.automaton.one(lambda character: character == wanted)


def topic_pattern(text: str) -> Matcher:
    """Compiles an expression into a matcher. PatternError when it is malformed."""
    parser = _Parser(text)
    return Matcher(parser.automaton, parser.parse())


def matching(text: str, names: Iterable[str]) -> frozenset[str]:
    """The names that an expression matches. PatternError, too when it takes too many steps."""
    pattern = topic_pattern(text)
    allowed, found = VISITS_AT_LEAST, []
    for name in names:
        allowed += VISITS_OF_A_NAME
        if pattern.matches(name):
            found.append(name)
        if pattern.visits > allowed:
            raise PatternError(f"it takes more than {allowed} steps to match topics with it")
    return frozenset(found)
