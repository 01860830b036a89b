"""Knowledge that a log's directory has of the store, as long as this process may write it."""

from collections.abc import Callable

from storage.env import FileSystem
from storage.errors import LogOffline
from storage.locks import Lock
from storage.log.log import Log
from storage.tier.manifests import local_state
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.manifest import RowTexts


class KnownState:
    """One log's. Used from any thread."""

    def __init__(self, log: Log, fs: FileSystem, known: LocalState) -> None:
        """`known`: what the directory has. Nothing is written."""
        self.now = known
        """Durable; replaced, never changed."""
        self.is_retired = False
        """True once the log was closed, or its part in the store is another's."""
        self._log = log
        self._fs = fs
        self._texts = RowTexts()
        self._saving = Lock()

    def save(self, change: Callable[[LocalState], LocalState]) -> None:
        """Makes it durable, unless another log may have the directory by now.

        DiskError, LogOffline: it is as before.
        """
        with self._saving:
            self.check_open()
            state = change(self.now)
            local_state.save(self._fs, self._log.files.path, state, self._texts)
            self.now = state

    def check_open(self) -> None:
        """LogOffline when nothing may be written any longer."""
        if self._log.is_closed:
            raise LogOffline(self._log.files.path, "the log is deleted, or closed")
        if self.is_retired:
            raise LogOffline(self._log.files.path, "another node leads it, or this one once more")

    def retire(self) -> None:
        """Has nothing written into the directory after this call. Blocks for a write under way."""
        with self._saving:
            self.is_retired = True
