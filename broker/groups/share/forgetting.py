"""Forgets the states of partitions that share groups read: on request, or with their topics.

A topic is noted as one whose states are being deleted, they are deleted, and the note goes. What
could not be deleted stays noted: who asks again begins again, and so does a member that reads it.
"""

from collections.abc import Collection
from functools import partial
from uuid import UUID

from broker.groups.row_writer import RowWriter
from broker.groups.share.group import ShareGroup
from broker.groups.share.persister import SharePersister
from broker.groups.share.states import PartitionStates, joined
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import chain, gather
from broker.topics.metadata_image import MetadataImage
from protocol.errors import ErrorCode, KafkaError


class Forgetting:
    """Deletes states. Used from the event loop only."""

    def __init__(self, persister: SharePersister, rows: RowWriter) -> None:
        """Nothing is being deleted."""
        self._persister = persister
        self._rows = rows

    def forget(
        self, share: ShareGroup, topics: Collection[UUID], image: MetadataImage
    ) -> Deferred[None]:
        """Deletes the states of topics; settled when that is durable. Fails with KafkaError."""
        places = _places(share.states, topics, image)
        return chain(
            partial(self._note, share, topics),
            partial(self._delete, share.group_id, places),
            partial(self._take_back, share, topics),
        )

    def _note(self, share: ShareGroup, topics: Collection[UUID]) -> Deferred[None] | None:
        share.set_states(share.states.ended(topics))
        return self._rows.store(share)

    def _delete(self, group_id: str, places: list[tuple[UUID, int]]) -> Deferred[None] | None:
        deletions: list[Deferred[None] | None] = [
            self._persister.delete(group_id, topic, index) for topic, index in places
        ]
        return gather(deletions, lambda _: None)

    def _take_back(self, share: ShareGroup, topics: Collection[UUID]) -> Deferred[None] | None:
        if share.is_over:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        share.set_states(share.states.forgotten(topics))
        return self._rows.store(share)

    def drop(self, share: ShareGroup, image: MetadataImage) -> bool:
        """Forgets topics that are gone, with which their states went; False when none is."""
        gone = [topic for topic in share.states.names if topic not in image.by_id]
        share.set_states(share.states.ended(gone).forgotten(gone))
        return bool(gone)


def _places(
    states: PartitionStates, topics: Collection[UUID], image: MetadataImage
) -> list[tuple[UUID, int]]:
    """Partitions of these topics; all of one that was to be deleted before."""
    known = joined(states.making, states.made)
    places = []
    for topic in topics:
        again = topic in states.going and topic in image.by_id
        indexes = range(len(image.by_id[topic].partitions)) if again else ()
        places += [(topic, index) for index in sorted({*known.get(topic, ()), *indexes})]
    return places
