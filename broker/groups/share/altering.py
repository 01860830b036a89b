"""Sets where a share group without members begins in partitions (KIP-932, AlterShareGroupOffsets).

The states are noted as being made, made with their start, and noted as made, as those of a group's
first read are, and never while those are made. The state's epoch is the group's; a new group begins
its first one.
"""

from collections.abc import Mapping
from functools import partial
from uuid import UUID

from broker.groups.row_writer import RowWriter
from broker.groups.share.group import ShareGroup
from broker.groups.share.persister import SharePersister
from broker.groups.share.rounds import StateRounds
from broker.groups.share.states import without
from broker.groups.subscriptions import Target
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import chain
from broker.topics.metadata_image import MetadataImage
from protocol.errors import ErrorCode, KafkaError

Place = tuple[UUID, int]
"""A topic, and a partition of it."""
Refused = dict[Place, KafkaError]
"""Partitions whose start could not be set, and why."""


class Altering:
    """Sets starts. Used from the event loop only."""

    def __init__(self, persister: SharePersister, rows: RowWriter, rounds: StateRounds) -> None:
        """Nothing is being set."""
        self._persister = persister
        self._rows = rows
        self._rounds = rounds

    def begin_at(
        self, share: ShareGroup, starts: Mapping[Place, int], image: MetadataImage
    ) -> Deferred[Refused]:
        """Sets the starts of partitions that exist; settled when that is durable.

        Waits for the states of the group that are being made. Fails with KafkaError: when the group
        itself cannot be stored, or has members by then.
        """
        return self._rounds.alone(share, partial(self._set, share, starts, image))

    def _set(
        self, share: ShareGroup, starts: Mapping[Place, int], image: MetadataImage
    ) -> Deferred[Refused]:
        _check_empty(share)
        answer: Deferred[Refused] = Deferred()
        refused: Refused = {}
        places = _by_topic(starts)
        steps = chain(
            partial(self._note, share, places, image),
            partial(self._initialize, share, starts, refused),
            partial(self._made, share, places, refused),
        )

        def over(_: None, error: BaseException | None) -> None:
            if error is None:
                answer.resolve(refused)
            else:
                answer.fail(error)

        steps.listen(over)
        return answer

    def _note(
        self, share: ShareGroup, places: Target, image: MetadataImage
    ) -> Deferred[None] | None:
        if not share.epoch:
            share.begin_epoch()
        share.set_states(share.states.begun(places, image))
        return self._rows.store(share)

    def _initialize(
        self, share: ShareGroup, starts: Mapping[Place, int], refused: Refused
    ) -> Deferred[None] | None:
        whole: Deferred[None] = Deferred()
        left = set(starts)

        def settled(place: Place, _: None, error: BaseException | None) -> None:
            left.discard(place)
            if error is not None:
                refused[place] = _named(error)
            if not left:
                whole.resolve(None)

        for (topic, index), start in starts.items():
            made = self._persister.initialize(share.group_id, topic, index, share.epoch, start)
            made.listen(partial(settled, (topic, index)))
        return whole if starts else None

    def _made(self, share: ShareGroup, places: Target, refused: Refused) -> Deferred[None] | None:
        lacking = _by_topic(refused)
        made = without(places, lacking)
        share.set_states(share.states.failed(lacking).finished(made))
        return None if share.is_over else self._rows.store(share)


def _check_empty(share: ShareGroup) -> None:
    if share.is_over:  # it went to another coordinator, or was deleted, meanwhile
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    if share.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {share.group_id} is not empty.")


def _by_topic(places: Mapping[Place, object]) -> Target:
    found: dict[UUID, set[int]] = {}
    for topic, index in places:
        found.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in found.items()}


def _named(error: BaseException) -> KafkaError:
    if isinstance(error, KafkaError):
        return error
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The state could not be stored")
