"""Answers about partitions, a page at a time: which are meant, and where the next page begins."""

from itertools import islice
from typing import TYPE_CHECKING

from broker.http.port.parameters import FLAG, Asked, Parameter, ParameterKind, count
from broker.http.resources.topics import find_topic
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import ResourceType

if TYPE_CHECKING:
    from storage.log.log import Log

MAX_PARTITIONS, DEFAULT_PARTITIONS = 1000, 200


def logs_of(catalog: TopicCatalog, asked: Asked) -> "list[Log]":
    """The logs that are meant, in the order of topics and partitions; ApiError 404.

    `topic`: of this one only. Without it those of the broker's own topics come with `internal`.
    """
    name, images = asked.fields["topic"], catalog.image.topics
    if name is not None:
        topics = [find_topic(catalog, name, asked.caller)]
    else:
        hidden = () if asked.fields["internal"] else catalog.internal_topics
        names = sorted(each for each in images if each not in hidden)
        topics = [images[each] for each in asked.caller.seen(ResourceType.TOPIC, names)]
    return [partition.log for topic in topics for partition in topic.partitions]


def page_of(logs: "list[Log]", asked: Asked) -> "list[Log]":
    """Those behind the cursor, as many as were asked for."""
    behind = (log for log in logs if (log.topic, log.partition) > asked.fields["after"])
    return list(islice(behind, asked.fields["limit"]))


def cursor_behind(listed: "list[dict[str, object]]", logs: "list[Log]") -> str | None:
    """The cursor for the page after the last partition listed; None at the end."""
    if not listed or (listed[-1]["topic"], listed[-1]["partition"]) == (
        logs[-1].topic,
        logs[-1].partition,
    ):
        return None
    return f"{listed[-1]['topic']}:{listed[-1]['partition']}"


def _cursor(text: str, _: int) -> tuple[str, int]:
    topic, mark, partition = text.rpartition(":")
    if not mark:
        raise ValueError(f"{text!r} is not TOPIC:PARTITION, as 'next' of the page before gave it")
    return topic, int(partition)


CHOICE = (
    Parameter("topic", ParameterKind(lambda text, _: text), "This topic only"),
    Parameter("internal", FLAG, "Include the broker's own topics", True),
    Parameter(
        "after", ParameterKind(_cursor), "Go on behind this: 'next' of the last page", ("", -1)
    ),
    Parameter("limit", count(1, MAX_PARTITIONS), "Partitions in the answer", DEFAULT_PARTITIONS),
)
"""Parameters that choose the partitions of an answer."""
