"""Makes the states of partitions that share groups read, before these partitions are assigned.

Of one group one round at a time: the states are noted as being made, made, and noted as made. A
round that a crash cut short begins again with the next heartbeat.
"""

from functools import partial
from uuid import UUID

from broker.groups.row_writer import RowWriter
from broker.groups.share.group import ShareGroup
from broker.groups.share.persister import UNINITIALIZED, SharePersister
from broker.groups.share.rounds import StateRounds
from broker.groups.share.states import without
from broker.groups.subscriptions import Target
from broker.runtime.deferred import Deferred, refused
from broker.runtime.event_log import event
from broker.runtime.gathering import chain
from broker.topics.metadata_image import MetadataImage


class Initializing:
    """StateRounds of all groups. Used from the event loop only."""

    def __init__(self, persister: SharePersister, rows: RowWriter, rounds: StateRounds) -> None:
        """Nothing is being made."""
        self._persister = persister
        self._rows = rows
        self._rounds = rounds
        self._making: set[ShareGroup] = set()

    def is_under_way(self, share: ShareGroup) -> bool:
        """True while states are being made for the group."""
        return share in self._making

    def begin(self, share: ShareGroup, image: MetadataImage) -> Target:
        """Notes what has to be made, if no round is under way; nothing when all is there."""
        if self._rounds.is_under_way(share):
            return {}
        missing = share.states.missing(share.topics, image)
        if missing:
            self._rounds.begin(share)
            self._making.add(share)
            share.set_states(share.states.begun(missing, image))
        return missing

    def end(self, share: ShareGroup) -> None:
        """Ends the round; what could not be made is begun again by a later heartbeat."""
        self._making.discard(share)
        self._rounds.end(share)

    def make(self, share: ShareGroup, partitions: Target) -> None:
        """Makes the states that were noted."""
        places = [(topic, index) for topic, each in partitions.items() for index in sorted(each)]
        left = set(places)
        failed: dict[UUID, set[int]] = {}

        def settled(place: tuple[UUID, int], _: None, error: BaseException | None) -> None:
            left.discard(place)
            if error is not None:
                failed.setdefault(place[0], set()).add(place[1])
                event(
                    "share_state_not_made", "error",
                    group=share.group_id, topic_id=place[0], partition=place[1], error=error,
                )  # fmt: skip
            if not left:
                self._made(share, partitions, failed)

        for topic, index in places:
            made = self._initialized(share, topic, index)
            made.listen(partial(settled, (topic, index)))

    def _initialized(self, share: ShareGroup, topic: UUID, index: int) -> Deferred[None]:
        make = self._persister.initialize
        try:
            return make(share.group_id, topic, index, share.epoch, UNINITIALIZED)
        except Exception as error:  # noqa: BLE001 - the round has to end
            return refused(error)

    def _made(self, share: ShareGroup, partitions: Target, failed: dict[UUID, set[int]]) -> None:
        lacking = {topic: frozenset(indexes) for topic, indexes in failed.items()}
        made = without(partitions, lacking)
        share.set_states(share.states.failed(lacking).finished(made))
        written = chain(lambda: None if share.is_over else self._rows.store(share))
        written.listen(lambda _, __: self.end(share))
