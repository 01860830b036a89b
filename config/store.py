"""The settings of a running broker: layers, the snapshots they add up to, and their changes.

Order, highest first: override of a topic or a group, flag, dynamic broker, dynamic default of all
brokers, environment, file, default. Flags are pinned: a key that has one cannot be changed on the
broker at run time. A change is checked whole before any of it counts. Nothing is written here: a
`Change` carries the text to make durable, and counts once it is committed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import partial

from config.alter import Alteration, Lookup, altered, replaced
from config.broker import BrokerConfig
from config.describe import (
    Described,
    describe_broker,
    describe_resource,
    describe_topic,
    in_force,
)
from config.errors import ConfigRequestError
from config.fleet.rules import check_fleet_topic, with_fleet_defaults
from config.layers import Layer, Setting, SettingSource, snapshot
from config.names import Named, broker_name, topic_name
from config.overrides import Overrides, restore
from config.reload import Reloaded, reloaded
from config.resources.group import GroupConfig, clamped
from config.resources.kinds import ResourceKind
from config.resources.rules import RULES, check_room
from config.resources.units import describe_broker_units, describe_topic_units
from config.rules import check_listener_keys, check_topic
from config.security.listeners import broker_snapshot, checked_broker
from config.tier.rules import (
    check_stored_topic,
    check_tier_defaults,
    check_tiered_topic,
    local_limits,
)
from config.topic import TopicConfig
from config.wire_rules import check_changes, check_of_every_broker, why_fixed

Listener = Callable[[str | None], None]
EVERY_BROKER = ""


@dataclass(frozen=True, slots=True)
class SettingsChange:
    """A checked change that does not count yet: of the broker, or of what has this `name`."""

    before: Overrides
    after: Overrides
    kind: ResourceKind
    name: str

    @property
    def topic(self) -> str | None:
        """The topic whose settings change; None when it is another resource."""
        return self.name if self.kind is ResourceKind.TOPIC else None

    def serialise(self) -> str:
        """The durable part as it will be: write this, then commit."""
        return self.after.serialise()


class ConfigStore:
    """Owns every setting. Used from one thread; snapshots may be read from any."""

    def __init__(self, static: Sequence[Layer] = ()) -> None:
        """`static` are the layers fixed at start, highest first (see `config.sources.load`).

        Raises ConfigError when they contradict one another.
        """
        self._static = with_fleet_defaults(static)
        self._overrides = Overrides()
        self._topics: dict[str, TopicConfig] = {}
        self._groups: dict[str, GroupConfig] = {}
        self._listeners: list[Listener] = []
        self._node = str(checked_broker(self._static).node_id)
        check_listener_keys(broker_snapshot(self._static))
        self._compute()

    @property
    def broker_config(self) -> BrokerConfig:
        """The settings of this broker."""
        return self._broker_config

    @property
    def topic_defaults(self) -> TopicConfig:
        """The settings of a topic without overrides."""
        return self._topic_defaults

    def topic_config(self, topic: str) -> TopicConfig:
        """The settings of `topic`: the same object until one of them changes."""
        if topic not in self._overrides.topics:
            return self._topic_defaults
        config = self._topics.get(topic)
        if config is None:
            config = self._topics[topic] = snapshot(TopicConfig, self._layers_of(topic))
        return config

    def group_config(self, group: str) -> GroupConfig:
        """The settings of `group`, its own within the bounds of the broker: the same object until
        one of them changes.
        """
        own = self._overrides.of(ResourceKind.GROUP).get(group)
        if own is None:
            return self._group_defaults
        config = self._groups.get(group)
        if config is None:
            layer = Layer(SettingSource.GROUP, clamped(own, self._broker_config))
            config = snapshot(GroupConfig, [layer, *self._broker_layers(self._overrides)])
            self._groups[group] = config
        return config

    def topic_config_with(self, topic: str, overrides: Mapping[str, str | None]) -> TopicConfig:
        """The settings of `topic` as they would be with these set too. Nothing changes; any thread.

        Raises as `prepare_topic`.
        """
        layers = self._layers_of(topic)
        own = {**layers[0].settings, **replaced(overrides, topic_name)}
        return snapshot(TopicConfig, [Layer(SettingSource.TOPIC, own), *layers[1:]])

    def topic_config_after(self, change: SettingsChange, topic: str) -> TopicConfig:
        """The settings of `topic` as they would be after `change`. Nothing changes."""
        own = Layer(SettingSource.TOPIC, change.after.topics.get(topic, {}))
        return snapshot(TopicConfig, [own, *self._broker_layers(change.after)])

    def broker_config_after(self, change: SettingsChange) -> BrokerConfig:
        """The settings of this broker as they would be after `change`. Nothing changes."""
        return broker_snapshot(self._broker_layers(change.after))

    def topic_overrides(self, topic: str) -> dict[str, str]:
        """The settings of `topic` itself, as text."""
        settings = self._overrides.topics.get(topic, {})
        return {name: setting.text for name, setting in settings.items()}

    def broker_overrides(self, node: str) -> dict[str, str]:
        """Settings made at run time for a broker (`""`: for every one), as text."""
        settings = self._overrides.brokers.get(node, {})
        return {name: setting.text for name, setting in settings.items()}

    def other_overrides(self, kind: ResourceKind, name: str) -> dict[str, str]:
        """The settings of a group or a subscription itself, as text."""
        settings = self._overrides.of(kind).get(name, {})
        return {name: setting.text for name, setting in settings.items()}

    def settings_of(self, kind: ResourceKind) -> Mapping[str, Mapping[str, Setting]]:
        """The settings of all groups, or of all subscriptions, by name: not to be changed."""
        return self._overrides.of(kind)

    def topics_with_overrides(self) -> AbstractSet[str]:
        """The topics that have settings of their own."""
        return self._overrides.topics.keys()

    def prepare_topic(self, topic: str, overrides: Mapping[str, str | None]) -> SettingsChange:
        """Checks the overrides of an AlterConfigs: these and no others.

        Raises ConfigError (INVALID_CONFIG 40) or ConfigRequestError (INVALID_REQUEST 42).
        """
        return self._topic_change(topic, replaced(overrides, topic_name))

    def check_new_topic(self, topic: str, overrides: Mapping[str, str | None]) -> None:
        """Checks the overrides of CreateTopics; raises as `prepare_topic`."""
        own = Layer(SettingSource.TOPIC, replaced(overrides, topic_name))
        self._check_topic(topic, [own, *self._broker_layers(self._overrides)], was_tiered=False)

    def prepare_topic_alteration(self, topic: str, changes: Iterable[Alteration]) -> SettingsChange:
        """Checks an IncrementalAlterConfigs of `topic`; raises as `prepare_topic`."""
        current = self._overrides.topics.get(topic, {})
        result = altered(current, changes, topic_name, self._inherited_by_topics)
        return self._topic_change(topic, result)

    def prepare_broker(self, node: str, overrides: Mapping[str, str | None]) -> SettingsChange:
        """Checks an AlterConfigs of a broker: the node id as text, or `""` for every broker.

        Raises as `prepare_topic`; ConfigRequestError too for another node's id, or a setting that
        is read only at start.
        """
        return self._broker_change(node, replaced(overrides, _dynamic_broker_name))

    def prepare_broker_alteration(self, node: str, changes: Iterable[Alteration]) -> SettingsChange:
        """Checks an IncrementalAlterConfigs of a broker; raises as `prepare_broker`."""
        current = self._overrides.brokers.get(node, {})
        result = altered(current, changes, _dynamic_broker_name, self._inherited_by_broker(node))
        return self._broker_change(node, result)

    def prepare(
        self, kind: ResourceKind, name: str, overrides: Mapping[str, str | None]
    ) -> SettingsChange:
        """Checks the overrides of an AlterConfigs; raises as `prepare_topic` and its like."""
        if kind is ResourceKind.TOPIC:
            return self.prepare_topic(name, overrides)
        if kind is ResourceKind.BROKER:
            return self.prepare_broker(name, overrides)
        return self._other_change(kind, name, replaced(overrides, RULES[kind].lookup))

    def prepare_alteration(
        self, kind: ResourceKind, name: str, changes: Iterable[Alteration]
    ) -> SettingsChange:
        """Checks an IncrementalAlterConfigs; raises as `prepare_topic` and its like."""
        if kind is ResourceKind.TOPIC:
            return self.prepare_topic_alteration(name, changes)
        if kind is ResourceKind.BROKER:
            return self.prepare_broker_alteration(name, changes)
        current = self._overrides.of(kind).get(name, {})
        lookup, layers = RULES[kind].lookup, self._broker_layers(self._overrides)
        inherited = partial(_inherited, lookup, layers)
        return self._other_change(kind, name, altered(current, changes, lookup, inherited))

    def commit(self, change: SettingsChange) -> None:
        """Makes a prepared change count and tells the subscribers, who ask for those of topics and
        of the broker.

        Changes must be committed in the order in which they were prepared, none between.
        """
        assert change.before is self._overrides, "another change was committed in between"
        self._overrides = change.after
        if change.kind is ResourceKind.BROKER:
            self._compute()
        elif change.kind is ResourceKind.TOPIC:
            self._topics.pop(change.name, None)
        else:
            self._groups.pop(change.name, None)
            return
        for listener in self._listeners:
            listener(change.topic)

    def text_with(self, topics: Mapping[str, Mapping[str, str | None]]) -> str:
        """The text of `serialise` with these overrides of topics, and no others of theirs.

        Nothing changes. ConfigError for a wrong name or value.
        """
        after = self._overrides
        for topic, overrides in topics.items():
            after = after.with_topic(topic, replaced(overrides, topic_name))
        return after.serialise()

    def use_topics(self, topics: Mapping[str, Mapping[str, str | None]]) -> None:
        """Lets overrides of topics count that were judged, and no others of theirs."""
        for topic, overrides in topics.items():
            after = self._overrides.with_topic(topic, replaced(overrides, topic_name))
            self.commit(SettingsChange(self._overrides, after, ResourceKind.TOPIC, topic))

    def set_topic(self, topic: str, overrides: Mapping[str, str | None]) -> None:
        """Checks and commits the overrides of `topic`; raises as `prepare_topic`."""
        self.commit(self.prepare_topic(topic, overrides))

    def remove_topic(self, topic: str) -> None:
        """Forgets the overrides of a topic that was deleted."""
        if topic in self._overrides.topics:
            after = self._overrides.with_topic(topic, {})
            self.commit(SettingsChange(self._overrides, after, ResourceKind.TOPIC, topic))

    def describe_topic(self, topic: str, names: Collection[str] | None = None) -> list[Described]:
        """The entries of DescribeConfigs for a topic; unknown `names` have none."""
        return describe_topic(self._layers_of(topic), names)

    def describe_topic_with(
        self, topic: str, overrides: Mapping[str, str | None]
    ) -> list[Described]:
        """The entries of a topic once it has these settings and no others; raises as `replaced`."""
        own = Layer(SettingSource.TOPIC, replaced(overrides, topic_name))
        return describe_topic([own, *self._layers_of(topic)[1:]])

    def describe_broker(
        self, node: str | None = None, names: Collection[str] | None = None
    ) -> list[Described]:
        """The entries for this broker, or (`""`) only what is set for every broker at run time."""
        self._check_node(self._node if node is None else node)
        if node != EVERY_BROKER:
            return describe_broker(self._broker_layers(self._overrides), names)
        every = self._overrides.brokers.get(EVERY_BROKER, {})
        entries = describe_broker([Layer(SettingSource.DYNAMIC_DEFAULT_BROKER, every)], names)
        return [_set_at_run_time(entry) for entry in entries if entry.name in every]

    def describe(
        self, kind: ResourceKind, name: str, names: Collection[str] | None = None
    ) -> list[Described]:
        """The entries of DescribeConfigs for a resource; unknown `names` have none."""
        if kind is ResourceKind.TOPIC:
            return describe_topic_units(self._layers_of(name), names)
        if kind is ResourceKind.BROKER and name != EVERY_BROKER:
            self._check_node(name)
            return describe_broker_units(self._broker_layers(self._overrides), names)
        if kind is ResourceKind.BROKER:
            return self.describe_broker(name, names)
        if kind not in RULES:
            return []
        own = Layer(RULES[kind].source, self._overrides.of(kind).get(name, {}))
        layers = [own, *self._broker_layers(self._overrides)]
        return describe_resource(RULES[kind].keys, layers, names)

    def names_with_settings(self, kind: ResourceKind) -> Collection[str]:
        """The groups, or the subscriptions, that have settings of their own."""
        return self._overrides.of(kind).keys()

    def subscribe(self, listener: Listener) -> None:
        """Calls `listener` after each change: the topic's name, or None when the broker's changed.

        A change of the broker's settings may change those of every topic.
        """
        self._listeners.append(listener)

    def serialise(self) -> str:
        """The durable part: everything set at run time."""
        return self._overrides.serialise()

    def restore(self, text: str) -> None:
        """Takes over what `serialise` gave; ConfigError when it is damaged or newer."""
        overrides = restore(text)
        checked_broker(self._broker_layers(overrides))
        self._overrides = overrides
        self._compute()

    def follow(self, text: str) -> None:
        """As `restore`, while it runs: who subscribed hears of it."""
        self.restore(text)
        for listener in self._listeners:
            listener(None)

    def check_stored_topics(self) -> None:
        """ConfigError when a topic has data in a tier that this start would not look into."""
        for topic in self._overrides.topics:
            check_stored_topic(self.topic_config(topic), self._broker_config, topic)

    def reload(self, static: Sequence[Layer]) -> Reloaded:
        """Takes over layers that were read again, as far as they may change at run time.

        Raises ConfigError when they, or what would be in force, contradict one another: nothing has
        changed then. Not between a `prepare` and its `commit`.
        """
        static = with_fleet_defaults(static)
        dynamic = self._dynamic_layers(self._overrides)
        check_listener_keys(checked_broker(_ranked(dynamic, static)))
        outcome = reloaded(self._static, static)
        layers = _ranked(dynamic, outcome.layers)
        checked_broker(layers)
        self._check_topics(self._overrides, layers)
        self._static = outcome.layers
        self._compute()
        for listener in self._listeners:
            listener(None)
        return outcome

    def _topic_change(self, topic: str, settings: Mapping[str, Setting]) -> SettingsChange:
        layers = [Layer(SettingSource.TOPIC, settings), *self._broker_layers(self._overrides)]
        was_tiered = self.topic_config(topic).remote_storage_enable
        self._check_topic(topic, layers, was_tiered=was_tiered)
        after = self._overrides.with_topic(topic, settings)
        return SettingsChange(self._overrides, after, ResourceKind.TOPIC, topic)

    def _broker_change(self, node: str, settings: Mapping[str, Setting]) -> SettingsChange:
        self._check_node(node)
        before = self._overrides.brokers.get(node, {})
        check_changes(before, settings, self._static)
        if node == EVERY_BROKER:
            check_of_every_broker(before, settings)
        after = self._overrides.with_broker(node, settings)
        layers = self._broker_layers(after)
        check_listener_keys(checked_broker(layers))
        defaults = snapshot(TopicConfig, layers)
        if local_limits(defaults) != local_limits(self._topic_defaults):
            check_tier_defaults(defaults)  # with or without a tier, as Kafka
        self._check_topics(after, layers)
        return SettingsChange(self._overrides, after, ResourceKind.BROKER, node)

    def _other_change(
        self, kind: ResourceKind, name: str, settings: Mapping[str, Setting]
    ) -> SettingsChange:
        """Of a group or a subscription."""
        if settings:
            check_room(kind, name, self._overrides.of(kind))
        RULES[kind].check(settings, self._broker_layers(self._overrides), self._broker_config)
        after = self._overrides.with_other(kind, name, settings)
        return SettingsChange(self._overrides, after, kind, name)

    def _check_topic(self, topic: str, layers: Sequence[Layer], *, was_tiered: bool) -> None:
        config = snapshot(TopicConfig, layers)
        check_topic(config, topic)
        check_tiered_topic(config, self._broker_config, was_tiered=was_tiered)
        check_fleet_topic(config, self._broker_config)

    def _check_topics(self, overrides: Overrides, layers: Sequence[Layer]) -> None:
        """Each topic with settings of its own, over these of the broker.

        Not for the tier, as in Kafka: of a local and a total limit the smaller one holds.
        """
        for topic, own in overrides.topics.items():
            check_topic(snapshot(TopicConfig, [Layer(SettingSource.TOPIC, own), *layers]), topic)

    def _compute(self) -> None:
        """The snapshots of the broker at once; those of topics and groups follow on demand."""
        layers = self._broker_layers(self._overrides)
        self._broker_config = broker_snapshot(layers)
        self._topic_defaults = snapshot(TopicConfig, layers)
        self._group_defaults = snapshot(GroupConfig, layers)
        self._topics.clear()
        self._groups.clear()

    def _broker_layers(self, overrides: Overrides) -> list[Layer]:
        return _ranked(self._dynamic_layers(overrides), self._static)

    def _dynamic_layers(self, overrides: Overrides) -> list[Layer]:
        one, every = overrides.brokers.get(self._node, {}), overrides.brokers.get(EVERY_BROKER, {})
        return [
            Layer(SettingSource.DYNAMIC_BROKER, one),
            Layer(SettingSource.DYNAMIC_DEFAULT_BROKER, every),
        ]

    def _layers_of(self, topic: str) -> list[Layer]:
        own = Layer(SettingSource.TOPIC, self._overrides.topics.get(topic, {}))
        return [own, *self._broker_layers(self._overrides)]

    def _inherited_by_topics(self, name: str) -> str:
        return in_force(topic_name(name).keys[0], self._broker_layers(self._overrides))

    def _inherited_by_broker(self, node: str) -> Callable[[str], str]:
        """Gives the value in force below the dynamic settings of `node`."""
        overrides = self._overrides.with_broker(node, {})
        dynamic = self._dynamic_layers(overrides)
        below = _ranked(dynamic if node else dynamic[1:], self._static)
        return lambda name: in_force(broker_name(name).keys[0], below)

    def _check_node(self, node: str) -> None:
        if node not in (EVERY_BROKER, self._node):
            raise ConfigRequestError(
                "node.id", f"broker {node} is not here: this is broker {self._node}"
            )


def _set_at_run_time(entry: Described) -> Described:
    """Without the default, as Kafka shows what is set for every broker."""
    is_set = (each for each in entry.synonyms if each.source is not SettingSource.DEFAULT)
    return replace(entry, synonyms=tuple(is_set))


def _inherited(lookup: Lookup, layers: Sequence[Layer], name: str) -> str:
    return in_force(lookup(name).keys[0], layers)


def _dynamic_broker_name(name: str) -> Named:
    named = broker_name(name)
    if not named.is_dynamic:
        raise ConfigRequestError(name, f"{name} cannot change at run time: {why_fixed(name)}")
    return named


def _ranked(dynamic: Sequence[Layer], static: Sequence[Layer]) -> list[Layer]:
    """The layers of a broker, highest first."""
    pinned = [layer for layer in static if layer.pinned]
    return [*pinned, *dynamic, *(layer for layer in static if not layer.pinned)]
