"""Addresses of instances, with the partitions whose state each has: for interactive queries.

Rules: Kafka 4.3's `EndpointToPartitionsManager`; but that members whose topics are not there have
no partitions, where a Kafka fails.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.groups.streams.configuring import ConfiguredSubtopology, CountOf
from broker.groups.streams.member import Endpoint, StreamsMember
from broker.groups.streams.topology import source_names

Partitions = Mapping[str, list[int]]
"""By topic."""


class EndpointPartitions(NamedTuple):
    """Partitions of an instance, at its address."""

    endpoint: Endpoint
    active: Partitions
    standby: Partitions


def endpoints_of(
    members: Iterable[StreamsMember],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    count_of: CountOf,
) -> list[EndpointPartitions]:
    """The partitions of all members that have an address."""
    return [
        EndpointPartitions(
            each.endpoint,
            _partitions(each.held.active, subtopologies, count_of),
            _partitions(each.held.standby, subtopologies, count_of),
        )
        for each in members
        if each.endpoint is not None
    ]


def _partitions(
    tasks: Mapping[str, Iterable[int]],
    subtopologies: Mapping[str, ConfiguredSubtopology],
    count_of: CountOf,
) -> Partitions:
    found: dict[str, list[int]] = {}
    for key, indexes in tasks.items():
        part, listed = subtopologies.get(key), sorted(indexes)
        for name in source_names(part.said) if part is not None else ():
            found[name] = listed[: count_of(name)]
    return found
