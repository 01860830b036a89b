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
from broker.runtime.gathering import gather
from broker.topics.metadata_image import MetadataImage


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
        share.set_states(share.states.ended(topics))
        answer: Deferred[None] = Deferred()
        written = self._rows.store(share)
        noted = partial(self._noted, share, topics, places, answer)
        if written is None:
            noted(None, None)
        else:
            written.listen(noted)
        return answer

    def _noted(
        self,
        share: ShareGroup,
        topics: Collection[UUID],
        places: list[tuple[UUID, int]],
        answer: Deferred[None],
        _: None,
        error: BaseException | None,
    ) -> None:
        if error is not None:
            answer.fail(error)
            return
        deletions: list[Deferred[None] | None] = [
            self._persister.delete(share.group_id, topic, index) for topic, index in places
        ]
        deleted = gather(deletions, lambda _: None)
        then = partial(self._deleted, share, topics, answer)
        if isinstance(deleted, Deferred):
            deleted.listen(then)
        else:
            then(None, None)

    def _deleted(
        self,
        share: ShareGroup,
        topics: Collection[UUID],
        answer: Deferred[None],
        _: None,
        error: BaseException | None,
    ) -> None:
        if error is not None:
            answer.fail(error)
            return
        share.set_states(share.states.forgotten(topics))
        written = self._rows.store(share)
        if written is None:
            answer.resolve(None)
        else:
            written.listen(lambda _, fault: _settle(answer, fault))

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


def _settle(answer: Deferred[None], error: BaseException | None) -> None:
    if error is None:
        answer.resolve(None)
    else:
        answer.fail(error)
