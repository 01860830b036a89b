"""The settings that clients change while the broker runs: what must survive a restart, as text.

Immutable: a change makes a new `Overrides`, so that it can be written to disk before it counts.
The text is JSON, versioned and with a checksum; a newer version is refused rather than half
understood. A text without settings of groups and of client metrics is of version 1, which releases
before them read, too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from config.alter import Lookup, read_setting
from config.errors import ConfigError
from config.layers import Setting
from config.names import broker_name, topic_name
from config.resources.kinds import ResourceKind
from config.resources.rules import RULES
from config.sealed_json import KEY, WrongChecksum, check_seal, sealed

VERSION = 2
WITH_TOPICS_AND_BROKERS_ALONE = 1
NAMES = {ResourceKind.GROUP: "groups", ResourceKind.CLIENT_METRICS: "client_metrics"}
"""Names in the text."""
Settings = Mapping[str, Setting]


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings by topic name, and by broker: `""` is every broker, else the node id as text.

    `others`: those of groups and of subscriptions to metrics of clients, by name.
    """

    topics: Mapping[str, Settings] = field(default_factory=dict)
    brokers: Mapping[str, Settings] = field(default_factory=dict)
    others: Mapping[ResourceKind, Mapping[str, Settings]] = field(default_factory=dict)

    def with_topic(self, topic: str, settings: Settings) -> "Overrides":
        """With these settings on `topic`, and no others there."""
        return replace(self, topics=_with(self.topics, topic, settings))

    def with_broker(self, node: str, settings: Settings) -> "Overrides":
        """With these settings on a broker (or on all: `""`), and no others there."""
        return replace(self, brokers=_with(self.brokers, node, settings))

    def of(self, kind: ResourceKind) -> Mapping[str, Settings]:
        """The settings of groups, or of subscriptions, by name."""
        return self.others.get(kind, {})

    def with_other(self, kind: ResourceKind, name: str, settings: Settings) -> "Overrides":
        """With these settings on a group or a subscription, and no others there."""
        changed = _with(self.of(kind), name, settings)
        return replace(self, others={**self.others, kind: changed})

    def serialise(self) -> str:
        """The text for `restore`, the same for the same settings."""
        content: dict[str, object] = {
            "brokers": _all_texts(self.brokers),
            "topics": _all_texts(self.topics),
        }
        others = {NAMES[kind]: _all_texts(named) for kind, named in self.others.items() if named}
        content["version"] = VERSION if others else WITH_TOPICS_AND_BROKERS_ALONE
        content |= others
        return json.dumps(sealed(content), indent=1, sort_keys=True) + "\n"


def restore(text: str) -> Overrides:
    """Parses the text of `serialise`. ConfigError: damaged, newer, or with an unknown key."""
    try:
        content = json.loads(text)
        version = content["version"]
        if version not in (WITH_TOPICS_AND_BROKERS_ALONE, VERSION):
            raise ConfigError(
                "version", f"stored settings have version {version}, this broker reads {VERSION}"
            )
        check_seal(content)
        return Overrides(
            _all_settings(content["topics"], topic_name),
            _all_settings(content["brokers"], broker_name),
            {
                kind: _all_settings(content.get(NAMES[kind], {}), rules.lookup)
                for kind, rules in RULES.items()
            },
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


def _all_texts(named: Mapping[str, Settings]) -> dict[str, dict[str, str]]:
    return {name: _texts(settings) for name, settings in named.items()}


def _all_settings(
    named: Mapping[str, Mapping[str, str]], lookup: Lookup
) -> dict[str, dict[str, Setting]]:
    return {name: _settings(texts, lookup) for name, texts in named.items()}


def _settings(texts: Mapping[str, str], lookup: Lookup) -> dict[str, Setting]:
    return {name: read_setting(name, text, lookup) for name, text in texts.items()}
