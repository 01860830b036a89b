"""Records that retention leaves where they are, since a share group has not finished them.

`horolog.share.retention.hold` of a group: from its first unfinished record on. Where its state is
not known yet, as after a start, all records stay; in a fleet its start is known of other nodes, as
of a short time ago. Asked by retention, for each log, from any
thread: only the groups that have the setting are looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from broker.share.ages import first_unfinished
from broker.share.served_partitions import ServedPartitions
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.key import ShareKey
from broker.share.state.remembered import UNKNOWN
from config.resources.kinds import ResourceKind
from config.store import ConfigStore
from storage.log.log import Log
from storage.retention.undelivered import Undelivered

StartsOf = Callable[[ShareKey], int | None]
"""Start of a share partition whose state another node remembers."""


class UndeliveredRecords:
    """Records that share groups keep, of all logs."""

    def __init__(
        self,
        states: ShareCoordinator,
        served: ServedPartitions,
        config: ConfigStore,
        elsewhere: StartsOf,
    ) -> None:
        """Looks at nothing yet. `elsewhere`: the start of what other nodes remember, -1 where
        nobody has read, None while it is not known.
        """
        self._states = states
        self._served = served
        self._config = config
        self._elsewhere = elsewhere
        self._seen: Mapping[str, object] | None = None
        self._groups: list[str] = []

    def of(self, log: Log) -> Sequence[Undelivered]:
        """Records that groups keep in a log."""
        if log.topic_id is None:
            return ()
        found = (self._of_group(group, log.topic_id, log.partition) for group in self._that_keep())
        return [each for each in dict.fromkeys(found) if each is not None]

    def _that_keep(self) -> list[str]:
        """Groups with the setting: its mapping is another one after each change."""
        settings = self._config.settings_of(ResourceKind.GROUP)
        if settings is not self._seen:
            self._groups, self._seen = keeping_groups(self._config), settings
        return self._groups

    def _of_group(self, group: str, topic_id: UUID, index: int) -> Undelivered | None:
        key = ShareKey(group, topic_id, index)
        most_ms = self._config.group_config(group).horolog_share_delay_max_ms
        served = self._served.find(key)
        start = None if served is None else served.start
        if start is not None:
            return Undelivered(start, most_ms)
        states = self._states
        is_read = states.loading.has_read(states.topic.index_of(key.owner))  # first: it may end
        state = states.states.get(key)
        if state is not None:
            start = UNKNOWN if state.start_offset == UNKNOWN else first_unfinished(state)
        else:
            start = UNKNOWN if is_read else self._elsewhere(key)
        if start is None:
            return Undelivered(0, most_ms)
        return None if start == UNKNOWN else Undelivered(start, most_ms)


def keeping_groups(config: ConfigStore) -> list[str]:
    """Groups with the setting."""
    groups = config.settings_of(ResourceKind.GROUP)
    return [each for each in groups if config.group_config(each).horolog_share_retention_hold]


def nowhere_else(_: ShareKey) -> int | None:
    """For a broker that has all states itself: what it has not read is not known."""
    return None
