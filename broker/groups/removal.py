"""Removal of groups: their offsets go first, then what else is remembered of them.

A group that is going is nobody's: until all of it is durable, its id is answered with
COORDINATOR_LOAD_IN_PROGRESS (14), so that nothing of a new group can mix with what is left of the
old one. Records that could not be written stay owed, and are written again when a client asks for
the group, or by the next round of expiry.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial

from broker.groups.classic.group import Group, Place
from broker.groups.classic.rebalance import Rebalances
from broker.groups.commits import Commits
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.records.classic import group_key
from broker.groups.row_writer import GroupLog, write_all
from broker.groups.share.group import ShareGroup
from broker.groups.streams.group import StreamsGroup
from broker.runtime.deferred import Deferred, hand_on
from broker.runtime.event_log import event
from broker.runtime.gathering import chain
from broker.state.state_topic import Row
from protocol.errors import ErrorCode, KafkaError


class Removals:
    """Takes groups out. Used from the event loop only."""

    def __init__(
        self, groups: dict[str, Group], commits: Commits, rebalances: Rebalances, log: GroupLog
    ) -> None:
        """No group is going. `groups` are all there are."""
        self._groups = groups
        self._commits = commits
        self._rebalances = rebalances
        self._log = log
        self._under_way: set[str] = set()
        self._owed: dict[str, list[Row]] = {}

    def __len__(self) -> int:
        """Number of groups that are not there any more, with records that may be."""
        return len(self._owed)

    @property
    def owed(self) -> Collection[str]:
        """Groups of which records could not be taken back."""
        return [group_id for group_id in self._owed if group_id not in self._under_way]

    def check(self, group_id: str) -> None:
        """Raises COORDINATOR_LOAD_IN_PROGRESS (14) for a group that is going."""
        if group_id not in self._under_way and group_id not in self._owed:
            return
        written = self.again(group_id)
        if written is not None:
            written.listen(_heard)
        if group_id in self._under_way or group_id in self._owed:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"Group {group_id} is being deleted."
            )

    def again(self, group_id: str) -> Deferred[None] | None:
        """Writes what is owed of a group that is gone; None when nothing is."""
        if group_id in self._under_way or group_id not in self._owed:
            return None
        self._under_way.add(group_id)
        return self._write(group_id)

    def take_out(self, group: Group, places: Sequence[Place]) -> Deferred[None]:
        """An Empty group goes, with its offsets in `places`; settled when that is durable.

        GROUP_ID_NOT_FOUND (69), NON_EMPTY_GROUP (68), or the error of a write.
        """
        if self._groups.get(group.group_id) is not group:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} not found.")
        self.check(group.group_id)
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        self._under_way.add(group.group_id)
        whole: Deferred[None] = Deferred()

        def without_offsets(_: None, error: BaseException | None) -> None:
            self._under_way.discard(group.group_id)
            if error is not None:
                whole.fail(error)
            elif self._groups.get(group.group_id) is not group:
                whole.fail(KafkaError(ErrorCode.NOT_COORDINATOR))
            else:
                self._close(group)
                chain(partial(self.again, group.group_id)).listen(partial(hand_on, whole))

        self._commits.take_back(group, places).listen(without_offsets)
        return whole

    def _close(self, group: Group) -> None:
        """It is there no more; its records are owed."""
        rows: list[Row] = [*self._commits.owed_rows(group), *group.owed.all()]
        if isinstance(group.modern, ConsumerGroup | ShareGroup | StreamsGroup):
            rows += [*group.modern.rows, *group.modern.tombstones()]
        else:
            rows.append((group_key(group.group_id), None))
        self._owed[group.group_id] = rows
        self._rebalances.close(group)
        self._commits.drop(group)
        del self._groups[group.group_id]

    def _write(self, group_id: str) -> Deferred[None]:
        whole: Deferred[None] = Deferred()

        def written(_: None, error: BaseException | None) -> None:
            self._under_way.discard(group_id)
            if error is None:
                self._owed.pop(group_id, None)
                whole.resolve(None)
            else:
                event("group_not_stored", "error", group=group_id, error=error)
                whole.fail(error)

        write_all(self._log, group_id, self._owed[group_id]).listen(written)
        return whole

    def lose(self, is_gone: Callable[[str], bool]) -> None:
        """Forgets what is owed of some groups: they are another node's."""
        for group_id in [each for each in self._owed if is_gone(each)]:
            del self._owed[group_id]


def _heard(_: None, __: BaseException | None) -> None:
    """Ignores the result: what is not written stays owed, and the log of events has the error."""
