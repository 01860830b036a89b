"""The parts in the store of all logs of a data directory."""

from collections import deque
from collections.abc import Iterator, Mapping

from storage.env import Env
from storage.locks import Lock
from storage.log.log import Log
from storage.tier.manifests.local_state import LocalState
from storage.tier.names import EpochKeys, PartitionKeys
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog

Name = tuple[str, int]


class RemoteLogs:
    """Logs that go on in the store. `logs` is replaced, never changed: any thread may read."""

    def __init__(self, reach: Reach, env: Env) -> None:
        """None."""
        self.reach = reach
        self.logs: Mapping[Name, TieredLog] = {}
        self._env = env
        self._turn = Lock()
        self._deleted: deque[TieredLog] = deque()

    def of(self, log: Log) -> TieredLog:
        """The log's part in the store, made if need be. The log has a topic id."""
        found = self.logs.get((log.topic, log.partition))
        if found is None or found.log is not log:
            found = self.opened(log, None)
        return found

    def opened(self, log: Log, known: LocalState | None) -> TieredLog:
        """A log whose directory knows this of the store was opened: it reads from there, too.

        The log has a topic id.
        """
        assert log.topic_id is not None
        keys = PartitionKeys(log.topic, log.topic_id, log.partition)
        return self._shown(TieredLog(log, keys, self.reach, self._env, known))

    def _shown(self, tiered: TieredLog) -> TieredLog:
        tiered.show()
        with self._turn:
            self.logs = {**self.logs, (tiered.log.topic, tiered.log.partition): tiered}
        return tiered

    def led(self, log: Log, known: LocalState, epoch: int) -> TieredLog:
        """The part in the store of a log that is led here in this epoch, once it is `served`.

        `known.manifest`: the state that it begins with, as number 0.
        """
        self.retire(log)
        assert log.topic_id is not None
        keys = PartitionKeys(log.topic, log.topic_id, log.partition)
        return self._shown(TieredLog(log, EpochKeys(keys, epoch), self.reach, self._env, known))

    def served(self, log: Log) -> None:
        """This node leads the log, until it has `resigned`."""
        found = self.logs.get((log.topic, log.partition))
        if found is not None and found.log is log:
            found.is_served = True

    def resigned(self, log: Log) -> None:
        """Another node leads the log: what is under way for it here comes to nothing."""
        found = self.logs.get((log.topic, log.partition))
        if found is not None and found.log is log:
            found.resign()

    def left(self, log: Log) -> None:
        """The log is out of service here, and what the store has of it stays."""
        self.retire(log)
        with self._turn:
            self.logs = {key: each for key, each in self.logs.items() if each.log is not log}

    def find(self, keys: PartitionKeys) -> TieredLog | None:
        """The log's part in the store that has these names; None without one. From any thread."""
        found = self.logs.get((keys.topic, keys.partition))
        return found if found is not None and found.keys == keys else None

    def retire(self, log: Log) -> None:
        """The log was closed: nothing is written into its directory after this call."""
        found = self.logs.get((log.topic, log.partition))
        if found is not None and found.log is log:
            found.retire()

    def retire_all(self) -> None:
        """Nothing is written into any directory after this call: the broker stops, and does not
        wait for the store. What the store has by then and the directory does not know, the next
        start takes over. Blocks for a write to the disk that is under way.
        """
        for each in self.logs.values():
            each.retire()

    def deleted(self, log: Log) -> None:
        """The log is deleted; its part in the store is to go as well."""
        name = log.topic, log.partition
        found = self.logs.get(name)
        if found is not None and found.log is log:
            with self._turn:
                self.logs = {key: each for key, each in self.logs.items() if key != name}
            self._deleted.append(found)

    def take_deleted(self) -> Iterator[TieredLog]:
        """Parts in the store of deleted logs, each once."""
        while self._deleted:
            yield self._deleted.popleft()
