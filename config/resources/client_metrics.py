"""The settings of a subscription to the metrics of clients (KIP-714), stored and shown.

Checks, codes and texts are those of `ClientMetricsConfigs` of Kafka 4.3.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from config.declare import described_key
from config.errors import ConfigRequestError
from config.layers import Setting
from config.names import Named
from config.values import INT_MAX, KafkaType, millis

LEAST_INTERVAL_MS, MOST_INTERVAL_MS = 100, 3_600_000
MOST_CHARACTERS = 16_384
MATCHED_BY = frozenset(
    (
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    )
)
"""Facts about a client that a pattern may be for."""


@dataclass(frozen=True, slots=True)
class MetricPrefixes:
    """A list of prefixes of metrics' names; `*` is all metrics, empty is none."""

    @property
    def kafka_type(self) -> KafkaType:
        """LIST: APPEND and SUBTRACT work on it."""
        return KafkaType.LIST

    def parse(self, text: str) -> tuple[str, ...]:
        """ValueError for a list that is too long."""
        _check_length(text)
        return tuple(word.strip() for word in text.split(",") if word.strip())

    def canonical(self, text: str) -> str:
        """Without blanks."""
        return ",".join(self.parse(text))

    def bounds(self) -> str:
        """For the documentation."""
        return "a list of prefixes, or *"


@dataclass(frozen=True, slots=True)
class ClientPatterns:
    """A list of `fact=regular expression`: clients for which each of them matches."""

    @property
    def kafka_type(self) -> KafkaType:
        """LIST: APPEND and SUBTRACT work on it."""
        return KafkaType.LIST

    def parse(self, text: str) -> Mapping[str, re.Pattern[str]]:
        """ValueError for an unknown fact, or what is no expression."""
        _check_length(text)
        return dict(_pattern(word.strip()) for word in text.split(",") if word.strip())

    def canonical(self, text: str) -> str:
        """Without blanks."""
        self.parse(text)
        return ",".join(word.strip() for word in text.split(",") if word.strip())

    def bounds(self) -> str:
        """For the documentation."""
        return "a list of fact=regular expression"


CLIENT_METRICS_KEYS = (
    described_key(
        "interval.ms",
        millis(-(2**31), INT_MAX),
        300_000,
        on_topic=True,
        on_broker=False,
        doc="Interval at which clients push, 100 to 3600000.",
    ),
    described_key(
        "metrics",
        MetricPrefixes(),
        (),
        on_topic=True,
        on_broker=False,
        doc="Metrics to push, by the beginning of their names.",
    ),
    described_key(
        "match",
        ClientPatterns(),
        (),
        on_topic=True,
        on_broker=False,
        doc=f"Clients that push: patterns for {', '.join(sorted(MATCHED_BY))}. Empty: all.",
    ),
)
_BY_NAME = {key.name: Named(key.on_topic[0], (key,)) for key in CLIENT_METRICS_KEYS}


def client_metrics_name(name: str) -> Named:
    """The key that `name` sets on a subscription; ConfigRequestError when there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ConfigRequestError(name, f"Unknown client metrics configuration: {name}") from None


def check_client_metrics(settings: Mapping[str, Setting]) -> None:
    """ConfigRequestError for an interval out of bounds."""
    interval = settings.get("interval.ms")
    if interval and not LEAST_INTERVAL_MS <= interval.value <= MOST_INTERVAL_MS:
        raise ConfigRequestError(
            "interval.ms",
            f"Invalid value {interval.value} for interval.ms, interval must be between "
            f"{LEAST_INTERVAL_MS} and {MOST_INTERVAL_MS} (1 hour)",
        )


def _check_length(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"{len(text)} characters are more than {MOST_CHARACTERS}")


def _pattern(word: str) -> tuple[str, re.Pattern[str]]:
    name, *expression = (part.strip() for part in word.split("="))
    try:
        if name in MATCHED_BY and len(expression) == 1:
            return name, re.compile(expression[0])
    except (re.error, OverflowError, RecursionError):  # bounds too large, too many brackets
        pass
    raise ValueError(f"Illegal client matching pattern: {word}")
