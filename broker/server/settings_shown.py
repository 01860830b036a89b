"""Settings of requests as the audit shows them: new values with those before, never a secret."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from broker.topics.config_resources import CONFIRM
from config.alter import Lookup
from config.errors import ConfigError
from config.names import broker_name, topic_name
from config.resources.kinds import ResourceKind
from config.resources.rules import RULES

if TYPE_CHECKING:
    from config.store import ConfigStore

HIDDEN = "[hidden]"
TOPIC, BROKER = 2, 4
_SET, _DELETE = 0, 1
_VERBS = {_SET: "=", _DELETE: " deleted", 2: "+=", 3: "-="}

OTHERS: Mapping[int, str] = {
    ResourceKind.GROUP: "group",
    ResourceKind.CLIENT_METRICS: "client metrics",
}
"""Words for the kinds of resources beside topics and brokers."""
_LOOKUPS: Mapping[int, Lookup] = {
    TOPIC: topic_name,
    BROKER: broker_name,
    **{kind: rules.lookup for kind, rules in RULES.items()},
}

Before = Mapping[str, str]
"""Values of a resource's own settings, by name."""


def values_before(resource: Any, config: "ConfigStore") -> Before:
    """The settings that the resource itself has at the moment."""
    if resource.resource_type == TOPIC:
        return config.topic_overrides(resource.resource_name)
    if resource.resource_type == BROKER:
        return config.broker_overrides(resource.resource_name)
    if resource.resource_type in OTHERS:
        return config.other_overrides(ResourceKind(resource.resource_type), resource.resource_name)
    return {}


def settings_text(configs: Iterable[Any], kind: int) -> str:
    """Settings of something new."""
    return " ".join(f"{each.name}={shown(each.name, each.value, kind)}" for each in configs)


def altered_text(resource: Any, before: Before) -> str:
    """The settings that a request asks for, with those before.

    AlterConfigs takes away what it leaves out.
    """
    kind = resource.resource_type
    told = [_told(each, before, kind) for each in resource.configs]
    if resource.configs and not hasattr(resource.configs[0], "config_operation"):
        named = {each.name for each in resource.configs}
        told += [f"{name} deleted{_was(name, before, kind)}" for name in before.keys() - named]
    return " ".join(told)


def shown(name: str, value: str | None, kind: int) -> str:
    """A value as it may be shown: that of a name nobody knows may be a secret, too."""
    if name == CONFIRM:
        return str(value)
    try:
        keys = _LOOKUPS[kind](name).keys
    except (ConfigError, KeyError):
        return HIDDEN
    return HIDDEN if any(key.sensitive for key in keys) else str(value)


def _told(each: Any, before: Before, kind: int) -> str:
    operation = getattr(each, "config_operation", _SET)
    value = "" if operation == _DELETE else shown(each.name, each.value, kind)
    return f"{each.name}{_VERBS.get(operation, '=')}{value}{_was(each.name, before, kind)}"


def _was(name: str, before: Before, kind: int) -> str:
    return f" (was {shown(name, before[name], kind) if name in before else 'default'})"
