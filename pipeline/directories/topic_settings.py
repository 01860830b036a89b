"""The settings of topics as stored in a data directory, for jobs that need no running broker.

Those changed at run time are in the directory itself; those of the broker's start come from the
same file and `key=value` pairs that it was given. A directory that was never Horolog's has none:
its topics then age as in Kafka, by their record times.
"""

from collections.abc import Sequence

from config.sources import load
from config.store import ConfigStore
from config.topic import TopicConfig
from storage.env import FileSystem
from storage.errors import FileMissing

CHANGED_SETTINGS_FILE = "horolog-config.json"
TOPICS_FILE = "horolog-topics.json"
_AS_KAFKA = "horolog.retention.clock=record"


class TopicSettings:
    """Of one data directory."""

    def __init__(
        self, fs: FileSystem, directory: str, flags: Sequence[str] = (), file: str | None = None
    ) -> None:
        """Reads them. ConfigError when they contradict one another; DiskError."""
        is_ours = fs.exists(f"{directory}/{TOPICS_FILE}")
        given = [*([] if is_ours else [_AS_KAFKA]), *flags]
        self._store = ConfigStore(load(flags=_last_wins(given), environment={}, file=file).layers)
        try:
            text = fs.read_text(f"{directory}/{CHANGED_SETTINGS_FILE}")
        except FileMissing:
            return
        self._store.restore(text)

    def of(self, topic: str) -> TopicConfig:
        """The settings of one topic."""
        return self._store.topic_config(topic)


def _last_wins(flags: Sequence[str]) -> list[str]:
    """Each key once: what the caller says overrides what we presume."""
    by_key = {flag.partition("=")[0]: flag for flag in flags}
    return list(by_key.values())
