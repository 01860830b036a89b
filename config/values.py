"""The kinds of value a setting can have: text in, typed value out, bounds checked.

A kind reads text (`parse`), says how the text is reported (`canonical`: the number alone, without
unit, as DescribeConfigs must) and what it allows (`bounds`, for the documentation). It raises
ValueError with a sentence; who knows the key adds its name. It must not know keys.
"""

import re
import sys
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeVar

from config.quantities import LONG_MAX, parse_quantity

T_co = TypeVar("T_co", covariant=True)

INT_MAX = 2**31 - 1
DOUBLE_MAX = sys.float_info.max


class KafkaType(IntEnum):
    """ConfigType of a DescribeConfigs answer (version 3 and later)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7
    PASSWORD = 9


class ValueType(Protocol[T_co]):
    """Operations that `Spelling` needs of a kind of value."""

    @property
    def kafka_type(self) -> KafkaType: ...
    def parse(self, text: str) -> T_co: ...
    def canonical(self, text: str) -> str: ...
    def bounds(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number between `low` and `high`, both allowed. `unit` is "", "ms" or "bytes".

    `bare` is what one of a number without unit counts: 3,600,000 for `log.retention.hours`.
    `unlimited` makes every negative number -1 and refuses 0 (Kafka's broker retention time).
    """

    low: int
    high: int
    unit: str = ""
    bare: int = 1
    unlimited: bool = False

    @property
    def kafka_type(self) -> KafkaType:
        """INT up to 2^31-1, LONG above."""
        return KafkaType.INT if self.high <= INT_MAX else KafkaType.LONG

    def parse(self, text: str) -> int:
        """The number in its smallest unit; ValueError when it is no number or out of bounds."""
        value = self._count(text) * self.bare
        if not self.unlimited:
            return value
        if value == 0:
            raise ValueError("must be at least 1, or -1 for no limit")
        return max(value, -1)

    def canonical(self, text: str) -> str:
        """The number alone, in the unit that the key's name promises."""
        value = self._count(text)
        return str(max(value, -1) if self.unlimited else value)

    def bounds(self) -> str:
        """For the documentation."""
        if self.unlimited:
            return "-1 (no limit), or at least 1"
        if self.high in (INT_MAX, LONG_MAX):
            return f"at least {self.low}" if self.low > -LONG_MAX else "any"
        return f"{self.low} to {self.high}"

    def _count(self, text: str) -> int:
        value = parse_quantity(text, self.unit, self.bare)
        if not self.low <= value <= self.high:
            raise ValueError(f"{value} is out of bounds: {self.low} to {self.high}")
        return value


def count(low: int = 0, high: int = INT_MAX) -> Number:
    """A number of things (Kafka's INT unless `high` is larger)."""
    return Number(low, high)


def millis(low: int = 0, high: int = LONG_MAX) -> Number:
    """A duration: a bare number is milliseconds; ms, s, m, h, d are understood."""
    return Number(low, high, "ms")


def size(low: int = 0, high: int = INT_MAX) -> Number:
    """A size: a bare number is bytes; KiB, MiB, GiB (and KB, MB, GB) are understood."""
    return Number(low, high, "bytes")


@dataclass(frozen=True, slots=True)
class Decimal:
    """A number with a point between `low` and `high`, both allowed."""

    low: float = 0.0
    high: float = DOUBLE_MAX

    @property
    def kafka_type(self) -> KafkaType:
        """DOUBLE."""
        return KafkaType.DOUBLE

    def parse(self, text: str) -> float:
        """ValueError when it is no number or out of bounds."""
        try:
            value = float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number") from None
        if not self.low <= value <= self.high:
            high = decimal_text(self.high)
            raise ValueError(f"{text.strip()} is out of bounds: {self.low:g} to {high}")
        return value

    def canonical(self, text: str) -> str:
        """As Java writes it."""
        return decimal_text(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        if self.high == DOUBLE_MAX:
            return f"at least {self.low:g}"
        return f"{self.low:g} to {self.high:g}"


def decimal_text(value: float) -> str:
    """A number with a point as Java writes it: 0.5, 1.7976931348623157E308."""
    return str(value).upper().replace("E+", "E")


@dataclass(frozen=True, slots=True)
class GzipLevel:
    """1 to 9, or -1 for the codec's own default (KIP-390)."""

    @property
    def kafka_type(self) -> KafkaType:
        """INT."""
        return KafkaType.INT

    def parse(self, text: str) -> int:
        """ValueError for 0 and everything outside."""
        level = Number(-1, 9).parse(text)
        if level == 0:
            raise ValueError(f"0 is out of bounds: {self.bounds()}")
        return level

    def canonical(self, text: str) -> str:
        """The number alone."""
        return str(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        return "1 to 9, or -1"


@dataclass(frozen=True, slots=True)
class Flag:
    """true or false, in any case, nothing else (as Kafka)."""

    @property
    def kafka_type(self) -> KafkaType:
        """BOOLEAN."""
        return KafkaType.BOOLEAN

    def parse(self, text: str) -> bool:
        """ValueError for anything but the two words."""
        word = text.strip().lower()
        if word not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return word == "true"

    def canonical(self, text: str) -> str:
        """Lower case."""
        return "true" if self.parse(text) else "false"

    def bounds(self) -> str:
        """For the documentation."""
        return "true, false"


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of a closed set, spelled exactly."""

    words: tuple[str, ...]

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> str:
        """ValueError naming the words that are allowed."""
        word = text.strip()
        if word not in self.words:
            raise ValueError(f"{text!r} is not one of {self.bounds()}")
        return word

    def canonical(self, text: str) -> str:
        """The word."""
        return self.parse(text)

    def bounds(self) -> str:
        """For the documentation."""
        return ", ".join(self.words)


@dataclass(frozen=True, slots=True)
class Words:
    """A list of words of a closed set, separated by commas; empty is allowed."""

    words: tuple[str, ...]

    @property
    def kafka_type(self) -> KafkaType:
        """LIST: APPEND and SUBTRACT work on it."""
        return KafkaType.LIST

    def parse(self, text: str) -> frozenset[str]:
        """ValueError naming the first word that is not allowed."""
        return frozenset(self._split(text))

    def canonical(self, text: str) -> str:
        """In the order given, without blanks and repetitions."""
        return ",".join(self._split(text))

    def bounds(self) -> str:
        """For the documentation."""
        return "a list of " + ", ".join(self.words)

    def _split(self, text: str) -> list[str]:
        words = [word.strip() for word in text.split(",") if word.strip()]
        for word in words:
            if word not in self.words:
                raise ValueError(f"{word!r} is not one of {', '.join(self.words)}")
        return list(dict.fromkeys(words))


@dataclass(frozen=True, slots=True)
class Text:
    """Any text, or text of one shape."""

    pattern: str = r".*"
    shape: str = "any text"

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> str:
        """ValueError naming the shape that is wanted."""
        if re.fullmatch(self.pattern, text.strip()) is None:
            raise ValueError(f"{text!r} is not {self.shape}")
        return text.strip()

    def canonical(self, text: str) -> str:
        """Without blanks around it."""
        return self.parse(text)

    def bounds(self) -> str:
        """For the documentation."""
        return self.shape
