"""One request as a question, and its answer as plain values that can be kept and compared."""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from protocol.schema import Message
from protocol.wire import ZERO_UUID

UNTOLD = {"throttle_time_ms", "host", "port", "cluster_id", "documentation"}
"""Fields that depend on the machine, the load or the wording of a manual."""


class Seen:
    """Facts of earlier answers: ids of topics by name, and the last session."""

    def __init__(self) -> None:
        self.ids: dict[str, UUID] = {}
        self.session_id = 0

    def learn(self, response: Any) -> None:
        """Remembers the ids and the session of an answer."""
        self.session_id = getattr(response, "session_id", 0) or self.session_id
        for topic in getattr(response, "topics", None) or ():
            if getattr(topic, "topic_id", ZERO_UUID) != ZERO_UUID and topic.name:
                self.ids.setdefault(topic.name, topic.topic_id)

    def name_of(self, topic_id: UUID) -> str:
        """Words for an id that is another one in each cluster."""
        names = [name for name, known in self.ids.items() if known == topic_id]
        return f"id of {names[0]}" if names else "an id"


class Question(NamedTuple):
    """A request. `what` is its name in the table of answers."""

    what: str
    version: int
    make: Callable[[Seen], Any]
    own_words: bool = False
    """Texts of refusals are ours, the codes are Kafka's."""
    differs: str = ""
    """The reason why our answer is another one on purpose."""
    in_any_order: bool = False
    """Lists of the answer are compared sorted."""
    without: frozenset[str] = frozenset()
    """Fields of the answer that are ours alone."""
    shown: tuple[str, ...] | None = None
    """Settings to compare of those that an answer has; None compares all."""


def plain(question: Question, response: Any, seen: Seen) -> Any:
    """The fields that are not as by default; ids by name, sessions and records by being there."""
    seen.learn(response)
    return _plain(question, response, seen, "")


def _plain(question: Question, value: Any, seen: Seen, name: str) -> Any:
    if isinstance(value, Message):
        told = {
            each: _plain(question, getattr(value, each), seen, each)
            for each, field in value.__fields__.items()
            if each not in UNTOLD | question.without
            and getattr(value, each) != field.fresh_default()
        }
        return {key: each for key, each in told.items() if each not in ("", [])}
    if name == "configs" and value:
        shown = question.shown
        listed = [each for each in value if shown is None or each.name in shown]
        listed.sort(key=lambda each: each.name)
        return [_plain(question, each, seen, "") for each in listed]
    if isinstance(value, list):
        items = [_plain(question, each, seen, "") for each in value]
        return sorted(items, key=repr) if question.in_any_order else items
    if isinstance(value, UUID):
        return seen.name_of(value)
    if name == "session_id":
        return "a session"
    if name == "error_message" and value and question.own_words:
        return "in own words"
    return len(value) if isinstance(value, bytes | bytearray | memoryview) else value
