"""Progress of a redrive: offsets that a group of its own has, one for each partition of letters.

The group is named for the share group. Its offsets never expire: else letters that are still there
would go back again. While letters are on their way the metadata of an offset has an intent: up to
where, and by which producer id. After a crash just those letters go the same way again, and what is
there already is known by that id. Who sets an offset by a tool sets it without an intent.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.coordinator import GroupCoordinator
from broker.groups.records.classic import OffsetCommitValue
from broker.runtime.gathering import wait_for
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock
from storage.timestamps import INT64_MAX

PREFIX = "horolog.redrive."
_INTENT = re.compile(r"to=(\d{1,18}) producer=(\d{1,18})")


class Intent(NamedTuple):
    """Letters that are on their way, or were when the broker died."""

    end: int
    """The first offset that is not among them."""
    producer_id: int


class Position(NamedTuple):
    """The first letter that was not sent back for certain."""

    offset: int
    intent: Intent | None = None


class RedriveProgress:
    """Progress in one topic of letters. Used from the event loop only."""

    def __init__(self, groups: GroupCoordinator, clock: Clock, group: str, topic: str) -> None:
        """Of a share group and a topic of letters."""
        self.name = PREFIX + group
        self._groups = groups
        self._clock = clock
        self._topic = topic

    def check(self) -> None:
        """KafkaError when nothing can be said of it now, or the name is that of another group."""
        self._groups.check_loaded(self.name)
        group = self._groups.groups.get(self.name)
        if group is not None and (group.modern is not None or not group.is_empty):
            text = f"Group {self.name} has members, or was made for something else"
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, text)

    def positions(self) -> Mapping[int, Position]:
        """Of each partition that has one. From any thread."""
        group = self._groups.groups.get(self.name)
        offsets = {} if group is None else dict(group.offsets)
        return {
            index: Position(value.offset, _intent_of(value.metadata))
            for (topic, index), value in offsets.items()
            if topic == self._topic
        }

    async def commit(self, index: int, position: Position) -> None:
        """Stores a position; durable when it returns. KafkaError."""
        self.check()
        group = self._groups.find_or_make(self.name)
        value = OffsetCommitValue(
            offset=position.offset,
            metadata=_text_of(position.intent),
            commit_timestamp=self._clock.now_ms(),
            expire_timestamp=INT64_MAX,
        )
        offsets = {(self._topic, index): value}
        size_bytes = self._room(group, offsets)
        await wait_for(self._groups.commits.store(group, offsets, size_bytes))

    def _room(self, group: Group, offsets: Mapping[tuple[str, int], OffsetCommitValue]) -> int:
        growth = self._groups.commits.growth(group, offsets)
        try:
            self._groups.room.check_offsets(group, growth)
        except KafkaError:
            self._groups.drop_unused(group)
            raise
        return max(growth[1], 0)


def _intent_of(metadata: str) -> Intent | None:
    found = _INTENT.fullmatch(metadata)
    return None if found is None else Intent(int(found[1]), int(found[2]))


def _text_of(intent: Intent | None) -> str:
    return "" if intent is None else f"to={intent.end} producer={intent.producer_id}"
