"""At start: what the topics file says, joined with the partition directories on the disk.

Directories of a topic that was being deleted are finished; topics that the file does not know
are adopted, which is how a Kafka directory becomes ours. A directory that carries another topic's
id is refused: serving it would mix two histories. Pure: nothing is made or removed here.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar
from uuid import UUID

from storage.directory.topics_file import CatalogState, TopicEntry, id_text
from storage.errors import StorageError

MAX_GAP = 10_000  # partitions of a topic whose directories may be missing


class TopicIdConflictError(StorageError):
    """A partition's directory belongs to another topic of the same name."""


class FoundLog(Protocol):
    """Facts about a log on the disk."""

    @property
    def topic_id(self) -> UUID | None:
        """The id in its `partition.metadata`; None without one."""


L = TypeVar("L", bound=FoundLog)
Found = Mapping[str, Mapping[int, L]]


def doomed_logs(stored: CatalogState | None, found: "Found[L]") -> list[L]:
    """Logs of topics whose deletion was decided and not finished."""
    deleted = stored.deleted if stored is not None else frozenset()
    return [log for logs in found.values() for log in logs.values() if log.topic_id in deleted]


def reconciled(
    stored: CatalogState | None, found: "Found[L]", new_id: Callable[[], UUID]
) -> CatalogState:
    """The topics that exist from now on; `found` holds no doomed log any more."""
    topics = dict(stored.topics) if stored is not None else {}
    for name, logs in found.items():
        known = topics.get(name)
        topic_id = _one_id(name, logs, known) or new_id()
        count = _partition_count(logs)
        if count:
            topics[name] = TopicEntry(
                topic_id, max(count, known.partition_count if known is not None else 0)
            )
    return CatalogState(topics)


def _partition_count(logs: Mapping[int, L]) -> int:
    """One more than the highest number; numbers far above all others are strays, not partitions."""
    return max((index for index in logs if index < len(logs) + MAX_GAP), default=-1) + 1


def _one_id(name: str, logs: Mapping[int, L], known: TopicEntry | None) -> UUID | None:
    topic_id = known.topic_id if known is not None else None
    for index, log in logs.items():
        if topic_id is None:
            topic_id = log.topic_id
        elif log.topic_id not in {None, topic_id}:
            assert log.topic_id is not None
            raise TopicIdConflictError(
                f"{name}-{index}",
                f"it carries topic id {id_text(log.topic_id)}, but the topic {name} "
                f"has {id_text(topic_id)}: move that directory away",
            )
    return topic_id
