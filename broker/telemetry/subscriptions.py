"""Subscriptions to the metrics of clients, as they are in force, and what each client gets of them.

The rules are those of `ClientMetricsManager` of Kafka 4.3. Patterns are matched in linear time by
the engine that members' expressions have: one that it does not know lets its subscription match no
client.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from broker.groups.consumer.automaton import Matcher, PatternError
from broker.groups.consumer.regex import topic_pattern
from broker.runtime.event_log import event
from broker.telemetry.facts import ClientFacts
from config.layers import Setting
from protocol.checksum import crc32c

ALL = "*"
DEFAULT_INTERVAL_MS = 300_000

Settings = Mapping[str, Setting]


class Subscribed(NamedTuple):
    """Metrics that one client is to push, and its interval."""

    metrics: tuple[str, ...]
    """Prefixes of names, in order; `*` alone is all, empty is none."""
    interval_ms: int


@dataclass(frozen=True, slots=True)
class MetricSubscription:
    """One subscription: for the clients whose facts match all of its patterns."""

    metrics: frozenset[str]
    interval_ms: int
    patterns: tuple[tuple[str, Matcher], ...]

    def matches(self, facts: Mapping[str, str | None]) -> bool:
        """True when each pattern matches the whole of its fact; without patterns always."""
        return all(
            (value := facts[name]) is not None and pattern.matches(value)
            for name, pattern in self.patterns
        )


class SubscriptionBook:
    """All subscriptions. Used from the event loop."""

    def __init__(self, settings: Callable[[], Mapping[str, Settings]]) -> None:
        """`settings()` gives those of each subscription, by its name."""
        self._settings = settings
        self._seen: Mapping[str, Settings] = {}
        self._subscriptions: list[MetricSubscription] = []
        self._version = 0

    @property
    def version(self) -> int:
        """Number that grows when a subscription changes."""
        settings = self._settings()
        if settings is not self._seen:
            if settings != self._seen:
                self._version += 1
                self._subscriptions = list(_read(settings))
            self._seen = settings
        return self._version

    def of(self, facts: ClientFacts, instance_id: UUID) -> Subscribed:
        """Metrics for a client to push: of all that it matches, at the shortest of their intervals.

        Kafka's default interval is the longest there can be.
        """
        assert self.version >= 0
        named = facts.by_name(instance_id)
        found = [each for each in self._subscriptions if each.matches(named)]
        metrics = frozenset[str]().union(*(each.metrics for each in found))
        interval_ms = min((each.interval_ms for each in found), default=DEFAULT_INTERVAL_MS)
        return Subscribed(
            (ALL,) if ALL in metrics else tuple(sorted(metrics)),
            min(interval_ms, DEFAULT_INTERVAL_MS),
        )


def subscription_id(subscribed: Subscribed, instance_id: UUID) -> int:
    """The id of what a client is to push: the same on every node, another for another set.

    As in Kafka: CRC-32C of the list and the interval, XORed with the hash of the instance's id.
    """
    text = f"[{', '.join(subscribed.metrics)}]{subscribed.interval_ms}"
    halves = (instance_id.int >> 64) ^ (instance_id.int & (1 << 64) - 1)
    number = crc32c(text.encode()) ^ (halves >> 32) ^ (halves & 0xFFFFFFFF)
    return int(number) - (1 << 32) if number >= 1 << 31 else int(number)


def _read(settings: Mapping[str, Settings]) -> Iterable[MetricSubscription]:
    for name, own in settings.items():
        try:
            patterns = tuple(
                (fact, topic_pattern(pattern.pattern))
                for fact, pattern in _value(own, "match", {}).items()
            )
        except PatternError as error:
            event("client_metrics_pattern_not_used", "warning", subscription=name, error=error)
            continue
        yield MetricSubscription(
            frozenset(_value(own, "metrics", ())),
            _value(own, "interval.ms", DEFAULT_INTERVAL_MS),
            patterns,
        )


def _value(settings: Settings, name: str, default: Any) -> Any:
    setting = settings.get(name)
    return default if setting is None else setting.value
