"""The settings that clients change while the broker runs: what must survive a restart, as text.

Immutable: a change makes a new `Overrides`, so that it can be written to disk before it counts.
The text is JSON, versioned and with a checksum; a newer version is refused rather than half
understood.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from config.alter import Lookup, read_setting
from config.errors import ConfigError
from config.layers import Setting
from config.names import broker_name, topic_name
from config.sealed_json import KEY, WrongChecksum, check_seal, sealed

VERSION = 1
Settings = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings by topic name, and by broker: `""` is every broker, else the node id as text."""

    topics: Mapping[str, Settings] = field(default_factory=dict)
    brokers: Mapping[str, Settings] = field(default_factory=dict)

    def with_topic(self, topic: str, settings: Settings) -> "Overrides":
        """With these settings on `topic`, and no others there."""
        return replace(self, topics=_with(self.topics, topic, settings))

    def with_broker(self, node: str, settings: Settings) -> "Overrides":
        """With these settings on a broker (or on all: `""`), and no others there."""
        return replace(self, brokers=_with(self.brokers, node, settings))

    def serialise(self) -> str:
        """The text for `restore`, the same for the same settings."""
        content = {
            "version": VERSION,
            "brokers": {node: _texts(settings) for node, settings in self.brokers.items()},
            "topics": {topic: _texts(settings) for topic, settings in self.topics.items()},
        }
        return json.dumps(sealed(content), indent=1, sort_keys=True) + "\n"


def restore(text: str) -> Overrides:
    """Parses the text of `serialise`. ConfigError: damaged, newer, or with an unknown key."""
    try:
        content = json.loads(text)
        version = content["version"]
        if version != VERSION:
            raise ConfigError(
                "version", f"stored settings have version {version}, this broker reads {VERSION}"
            )
        check_seal(content)
        return Overrides(
            {name: _settings(each, topic_name) for name, each in content["topics"].items()},
            {name: _settings(each, broker_name) for name, each in content["brokers"].items()},
        )
    except WrongChecksum as error:
        raise ConfigError(KEY, f"stored settings: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError("version", f"stored settings cannot be read: {error!r}") from error


def _with(all_of: Mapping[str, Settings], name: str, settings: Settings) -> dict[str, Settings]:
    result = dict(all_of)
    if settings:
        result[name] = settings
    else:
        result.pop(name, None)
    return result


def _texts(settings: Settings) -> dict[str, str]:
    return {name: setting.text for name, setting in settings.items()}


def _settings(texts: Mapping[str, str], lookup: Lookup) -> dict[str, Setting]:
    return {name: read_setting(name, text, lookup) for name, text in texts.items()}
