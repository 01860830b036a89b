"""Strategies of `share.auto.offset.reset`: where a share group begins to read (KIP-1106)."""

import re
from dataclasses import dataclass
from datetime import timedelta

from config.values import KafkaType

LATEST, EARLIEST = "latest", "earliest"
BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12})(?:\.(\d{1,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """`latest`, `earliest`, or `by_duration:` and an ISO-8601 duration."""

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> str:
        """The strategy; ValueError for any other text."""
        word = text.strip()
        if word not in (LATEST, EARLIEST):
            duration_ms(word)
        return word

    def canonical(self, text: str) -> str:
        """The strategy."""
        return self.parse(text)

    def bounds(self) -> str:
        """For the documentation."""
        return f"{LATEST}, {EARLIEST}, {BY_DURATION}PnDTnHnMn.nS"


def duration_ms(strategy: str) -> int:
    """The duration of a `by_duration:` strategy in ms. ValueError when it is none."""
    found = None
    if strategy.startswith(BY_DURATION):
        found = _DURATION.fullmatch(strategy[len(BY_DURATION) :])
    if found is None or not any(found.groups()):
        raise ValueError(
            f"{strategy!r} is not {LATEST}, {EARLIEST} or {BY_DURATION} and an ISO-8601 duration"
        )
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups()[:4])
    fraction = int((found[5] or "").ljust(3, "0")[:3])
    try:
        span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    except OverflowError:
        raise ValueError(f"{strategy!r} is too long") from None
    return span // timedelta(milliseconds=1) + fraction
