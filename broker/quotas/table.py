"""Table of the quotas, and the one that applies to a client: Kafka's precedence.

A table is immutable: alterations go into a draft that becomes the next one, so that it can be
written before it counts. A name of None is the default of its kind. Texts and codes as in Kafka's
controller.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"
KEYS = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
KEYS_OF_ADDRESSES = (CONNECTION_CREATION_RATE,)
LARGEST_WHOLE: Mapping[str, tuple[float, str]] = {
    PRODUCER_BYTE_RATE: (2.0**63, "LONG"),
    CONSUMER_BYTE_RATE: (2.0**63, "LONG"),
    CONNECTION_CREATION_RATE: (2.0**31, "INT"),
}
"""Keys whose values are whole numbers below this one."""
LEAST_OF_DEFAULTS = {PRODUCER_BYTE_RATE: 1024, CONSUMER_BYTE_RATE: 1024, REQUEST_PERCENTAGE: 1}
"""Bytes a second, percent: smaller limits are for clients that are named."""
MAX_ENTITIES = 10_000
MAX_NAME = 256  # characters; longer names of clients share what their beginning has

Entity = tuple[tuple[str, str | None], ...]
"""The parts of an entity's name, by kind in alphabetical order."""
Limits = Mapping[str, float]


class Limit(NamedTuple):
    """One limit that holds for a client: all clients of the same `shared_by` use it up together."""

    bound: float
    shared_by: tuple[str, str]


@dataclass(frozen=True, slots=True)
class QuotaTable:
    """All limits, by entity."""

    entries: Mapping[Entity, Limits] = field(default_factory=dict)

    @property
    def limits_requests(self) -> bool:
        """True when there are limits of users or clients, not of addresses alone."""
        return any(not _is_address(entity) for entity in self.entries)

    def limit(self, key: str, user: str, client_id: str, *, is_super: bool = False) -> Limit | None:
        """The most special limit that was set for this client, None when there is none.

        No default holds for a super user: nobody shuts out who could take it back.
        """
        for parts, shared_by in _by_precedence(user, client_id):
            limits = self.entries.get(parts)
            if limits is not None and key in limits and not (is_super and _is_default(parts)):
                return Limit(limits[key], shared_by)
        return None


def alter(
    entries: dict[Entity, Limits], entity: Entity, changes: Mapping[str, float | None]
) -> None:
    """Sets limits of one entity in a draft of a table, or removes those that are None.

    Raises KafkaError INVALID_REQUEST (42) for an entity or a limit that cannot be; then nothing
    has changed.
    """
    check_entity(entity)
    limits = dict(entries.get(entity, {}))
    for key, value in changes.items():
        if value is None:
            limits.pop(key, None)
        else:
            limits[key] = _checked(key, value, KEYS_OF_ADDRESSES if _is_address(entity) else KEYS)
    if not limits:
        entries.pop(entity, None)
    elif entity in entries or len(entries) < MAX_ENTITIES:
        entries[entity] = limits
    else:
        raise _refused(f"There are quotas for {MAX_ENTITIES} entities already")


def _by_precedence(user: str, client_id: str) -> Sequence[tuple[Entity, tuple[str, str]]]:
    """Every entity that can speak for a client, the most special first, and who shares its limit.

    A default holds for each user or client by itself.
    """
    both, users, clients = (user, client_id), (user, ""), ("", client_id)
    return (
        (((CLIENT_ID, client_id), (USER, user)), both),
        (((CLIENT_ID, None), (USER, user)), both),
        (((USER, user),), users),
        (((CLIENT_ID, client_id), (USER, None)), both),
        (((CLIENT_ID, None), (USER, None)), both),
        (((USER, None),), users),
        (((CLIENT_ID, client_id),), clients),
        (((CLIENT_ID, None),), clients),
    )


def _is_default(entity: Entity) -> bool:
    return any(name is None for _, name in entity)


def entity_of(parts: Iterable[tuple[str, str | None]]) -> Entity:
    """An entity from its parts in any order; as in Kafka, the last of a kind counts."""
    return tuple(sorted(dict(parts).items()))


def check_entity(entity: Entity) -> None:
    """Raises KafkaError INVALID_REQUEST (42) when nobody can have this name."""
    if not entity:
        raise _refused("Invalid empty client quota entity")
    if _is_address(entity) and len(entity) > 1:
        raise _refused("An address has quotas by itself, without user or client-id")
    for kind, name in entity:
        if kind not in {USER, CLIENT_ID, IP}:
            raise _refused(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise _refused(f"Empty {kind} not supported")
        if name is not None and len(name) > MAX_NAME:
            raise _refused(f"The name of a {kind} has up to {MAX_NAME} characters here")
        if kind == IP and name is not None:
            _check_address(name)


def _is_address(entity: Entity) -> bool:
    return any(kind == IP for kind, _ in entity)


def _check_address(name: str) -> None:
    try:
        ip_address(name)
    except ValueError:
        raise _refused(f"{name} is no address; names of hosts are not looked up") from None


def _checked(key: str, value: float, keys: Sequence[str]) -> float:
    if key not in keys:
        raise _refused(f"Invalid configuration key {key}")
    if not value > 0:
        raise _refused(f"Quota {key} must be greater than 0")
    largest, kind = LARGEST_WHOLE.get(key, (math.inf, ""))
    if kind and not value < largest:
        raise _refused(f"Proposed value for {key} is too large for a {kind}.")
    if not math.isfinite(value):
        raise _refused(f"Quota {key} must be a number")
    if kind and value != int(value):
        raise _refused(f"{key} cannot be a fractional value.")
    return value


def _refused(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
