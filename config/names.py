"""Finds the key that a name means, and says what was probably meant when there is none."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from config.broker import BrokerConfig
from config.declare import keys_of
from config.errors import ConfigError, NotServedError
from config.foreign.kept import KEPT_OF_THE_BROKER, KEPT_OF_TOPICS
from config.foreign.known import why_broker_key_is_not_served, why_topic_key_is_not_served
from config.key import ConfigKey, Spelling
from config.listener_keys import listener_key
from config.security.oauth import OauthConfig
from config.security.tls import TlsConfig
from config.topic import TopicConfig

TOPIC_KEYS = keys_of(TopicConfig)
BROKER_KEYS = (*keys_of(BrokerConfig), *keys_of(TlsConfig), *keys_of(OauthConfig))
DESCRIBED_TOPIC_KEYS = (*TOPIC_KEYS, *KEPT_OF_TOPICS)
DESCRIBED_BROKER_KEYS = (*BROKER_KEYS, *KEPT_OF_THE_BROKER, *DESCRIBED_TOPIC_KEYS)
"""All that can be set and is shown: with what is only kept (`kept.py`)."""


@dataclass(frozen=True, slots=True)
class Named:
    """A name as it was given, the spelling it is, and the keys it sets (an alias can set two)."""

    spelling: Spelling
    keys: tuple[ConfigKey, ...]

    @property
    def is_dynamic(self) -> bool:
        """True when a running broker takes a new value."""
        return all(key.dynamic for key in self.keys)

    def parse(self, text: str, *, where: str = "") -> tuple[Any, str]:
        """The typed value and the text that is reported for it; ConfigError when it is not one."""
        kind = self.spelling.type
        try:
            return kind.parse(text), kind.canonical(text)
        except ValueError as error:
            raise ConfigError(
                self.spelling.name, f"{self.spelling.name}: {error}", where=where
            ) from error


def topic_name(name: str) -> Named:
    """The keys that `name` sets on a topic; ConfigError names the nearest key when there is none.
    Raises NotServedError.
    """
    found = _ON_TOPIC.get(name)
    if found is not None:
        return found
    reason = why_topic_key_is_not_served(name)
    if reason is not None:
        raise NotServedError(
            name, f"{name} is known to Kafka, not served by this version: {reason}"
        )
    elsewhere = _ON_BROKER.get(name)
    if elsewhere is not None:
        raise ConfigError(name, f"{name} is a setting of the broker{_on_topic(elsewhere)}")
    raise ConfigError(name, _unknown(name, _ON_TOPIC))


def broker_name(name: str) -> Named:
    """The keys that `name` sets on the broker; ConfigError names the nearest key when there is
    none. Raises NotServedError.
    """
    found = _ON_BROKER.get(name)
    if found is not None:
        return found
    of_listener = listener_key(name)
    if of_listener is not None:
        return Named(of_listener.on_broker[0], (of_listener,))
    reason = why_broker_key_is_not_served(name)
    if reason is not None:
        raise NotServedError(
            name, f"{name} is known to Kafka, not served by this version: {reason}"
        )
    elsewhere = _ON_TOPIC.get(name)
    if elsewhere is not None:
        raise ConfigError(name, f"{name} is a setting of topics{_on_broker(name, elsewhere)}")
    raise ConfigError(name, _unknown(name, _ON_BROKER))


def named_anywhere(name: str) -> Named:
    """The keys that `name` sets on the broker, else on a topic; raises as `broker_name`."""
    on_topic = _ON_TOPIC.get(name)
    return broker_name(name) if on_topic is None or name in _ON_BROKER else on_topic


def is_of_topics_alone(name: str) -> bool:
    """True for a setting of topics that has no default on the broker."""
    on_topic = _ON_TOPIC.get(name)
    return on_topic is not None and not on_topic.keys[0].on_broker


def known_broker_names() -> Iterable[str]:
    """Every name that the broker's settings answer to."""
    return _ON_BROKER.keys()


def _on_topic(named: Named) -> str:
    key = named.keys[0]
    return f": on a topic it is {key.name}" if key.on_topic else ""


def _on_broker(name: str, on_topic: Named) -> str:
    key = on_topic.keys[0]
    if not key.on_broker:
        return ", without a default on the broker"
    alias = f"log.{name}"  # an older name of a topic's setting has an older broker name
    return f": its default on the broker is {alias if alias in _ON_BROKER else key.broker_name}"


_A_LETTER_OFF = 0.95  # so near a name is meant, even one that the tables do not show


def _unknown(name: str, known: Mapping[str, Named]) -> str:
    import difflib

    visible = [each for each, named in known.items() if not named.spelling.hidden]
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=_A_LETTER_OFF)
    nearest = nearest or difflib.get_close_matches(name, visible, n=1, cutoff=0.5)
    meant = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"{name} is not a known setting{meant}"


def _index(spelled: Iterable[tuple[ConfigKey, Spelling]]) -> dict[str, Named]:
    """By name. Two keys may share an alias, never a name of their own."""
    found: dict[str, Named] = {}
    for key, spelling in spelled:
        before = found.get(spelling.name)
        if before is None:
            found[spelling.name] = Named(spelling, (key,))
            continue
        assert spelling.hidden, spelling.name
        assert before.spelling.type == spelling.type, spelling.name
        found[spelling.name] = Named(spelling, (*before.keys, key))
    return found


_ON_TOPIC = _index((key, each) for key in DESCRIBED_TOPIC_KEYS for each in key.on_topic)
_ON_BROKER = _index((key, each) for key in DESCRIBED_BROKER_KEYS for each in key.on_broker)
