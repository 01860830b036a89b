"""Topics that match the regular expressions of groups: looked up off the loop, and again.

An expression that was not looked up yet matches nothing. All of a group are looked up together,
when there is a new one, when topics came or went, and once in a while; not more than every ten
seconds. The broker's own topics match an expression only that has their two underscores. (A Kafka
matches them with any, so that `.*` reads `__consumer_offsets`, which its own commits feed.)
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from broker.groups.classic.group import Group, GroupState
from broker.groups.consumer.automaton import PatternError
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.heartbeat import ShowsTopic
from broker.groups.consumer.regex import matching
from broker.groups.records.consumer import RegexValue
from broker.groups.surroundings import Surroundings
from broker.runtime.event_log import event
from broker.topics.metadata_image import MetadataImage
from broker.topics.names import internal_topics

MIN_INTERVAL_MS = 10_000
OF_THE_BROKER = "__"
"""In an expression that is to match the broker's own topics, too."""

Matched = dict[str, frozenset[str] | PatternError]
"""Topics by expression, or the reason why it cannot be used."""
LookUp = Callable[[frozenset[str], tuple[str, ...], frozenset[str]], "asyncio.Future[Matched]"]
"""The expressions, names of topics, and those of the broker's own; as `match_all`."""


class Then(Protocol):
    """Callback after a group's expressions were looked up."""

    def __call__(self, consumer: ConsumerGroup, *, changed: bool) -> None:
        """`changed`: some match other topics than before."""


class TopicMatching:
    """Looks up expressions. Used from the event loop only."""

    def __init__(self, around: Surroundings, look_up: LookUp, then: Then) -> None:
        """Nothing was looked up."""
        self._around = around
        self._look_up = look_up
        self._then = then

    def refresh(
        self, group: Group, consumer: ConsumerGroup, shows: ShowsTopic | None = None
    ) -> None:
        """Looks the group's expressions up if that is due, among topics that the member may see.

        As in Kafka the result is the group's: the rights are those of the member that comes first.
        """
        if consumer.patterns and not consumer.is_matching and self._is_due(consumer):
            image = self._around.image()
            own = internal_topics(self._around.settings())
            names = tuple(name for name in image.topics if shows is None or shows(name))
            consumer.is_matching = True
            future = self._look_up(consumer.patterns, names, own)
            future.add_done_callback(partial(self._matched, group, consumer, image))

    def _is_due(self, consumer: ConsumerGroup) -> bool:
        now_ms = self._around.now_ms()
        last_ms = max((each.timestamp for each in consumer.expressions.values()), default=0)
        if now_ms <= last_ms + MIN_INTERVAL_MS:
            return False
        interval_ms = self._around.settings().group_consumer_regex_refresh_interval_ms
        return (
            consumer.patterns != consumer.expressions.keys()
            or consumer.matched_image is not self._around.image()
            or now_ms > last_ms + interval_ms
        )

    def _matched(
        self,
        group: Group,
        consumer: ConsumerGroup,
        image: MetadataImage,
        future: "asyncio.Future[Matched]",
    ) -> None:
        consumer.is_matching = False
        is_over = group.modern is not consumer or group.state is GroupState.DEAD
        if is_over or future.cancelled():
            return
        if (error := future.exception()) is not None:
            event("topics_not_matched", "error", group=group.group_id, error=error)
            return
        consumer.matched_image = image
        changed = False
        for text, topics in future.result().items():
            if text in consumer.patterns:
                changed |= self._set(consumer, text, topics)
        self._then(consumer, changed=changed)

    def _set(
        self, consumer: ConsumerGroup, text: str, topics: frozenset[str] | PatternError
    ) -> bool:
        """Of an expression that takes too many steps its members hear; it keeps what it had."""
        consumer.refused.pop(text, None)
        if isinstance(topics, PatternError):
            consumer.refused[text] = str(topics)
            known = consumer.expressions.get(text)
            topics = frozenset(() if known is None else known.topics)
        now_ms = self._around.now_ms()
        value = RegexValue(topics=sorted(topics), version=0, timestamp=now_ms)
        return consumer.set_expression(text, value)


def match_all(patterns: frozenset[str], names: tuple[str, ...], own: frozenset[str]) -> Matched:
    """The topics that each expression matches. Takes its time: not for the loop.

    `own` are names of the broker's own topics.
    """
    others = tuple(name for name in names if name not in own)
    return {text: _match(text, names if OF_THE_BROKER in text else others) for text in patterns}


def _match(text: str, names: tuple[str, ...]) -> frozenset[str] | PatternError:
    try:
        return matching(text, names)
    except PatternError as error:
        return error
