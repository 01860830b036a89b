"""Readers and writers of each partition, as far as time is concerned: lags, and bad clocks.

Of the groups that read a partition the one that is furthest behind; of the clients that sent bad
times those that sent most. All are looked through once for an answer, up to a bound.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from broker.groups.coordinator import GroupCoordinator
from broker.groups.lag import Standing, standings
from broker.http.port.caller import Caller
from broker.http.resources.offenders import offender_entry
from broker.record_times.offenders import DirtyClients
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import ResourceType
from storage.errors import StorageError
from storage.search.segment_access import NotInMemory

MAX_STANDINGS = 20_000
CLIENTS_OF_ONE = 4

Place = tuple[str, int]  # topic, partition
_NO_TIMES: Mapping[str, object] = MappingProxyType({"record_time_ms": None, "arrival_ms": None})


def furthest_behind(
    groups: GroupCoordinator, topics: TopicCatalog, caller: Caller
) -> dict[Place, Standing]:
    """Of each partition the group that has most records before it, of those it sees."""
    found: dict[Place, Standing] = {}
    most: dict[Place, int] = {}
    known = dict(groups.groups)
    shown = {name: known[name] for name in caller.seen(ResourceType.GROUP, known)}
    for seen, each in enumerate(standings(shown, topics.image)):
        place, records = (each.topic, each.partition), each.records
        if records >= most.get(place, 0):
            found[place], most[place] = each, records
        if seen >= MAX_STANDINGS:
            break
    return found


def lag_in_time(standing: Standing | None, *, may_wait: bool) -> dict[str, object] | None:
    """Lag in records, and in time by both clocks; without times where they are unknown.

    `may_wait`: files may be read, which is never done on the loop.
    """
    if standing is None:
        return None
    untimed = {"group": standing.group, "records": standing.records, **_NO_TIMES}
    if standing.log is None:
        return untimed
    try:
        lag = standing.log.search.lag_at(standing.value.offset, may_wait=may_wait)
    except (StorageError, NotInMemory):
        return untimed
    return {
        "group": standing.group,
        "records": lag.records,
        "record_time_ms": lag.record_ms,
        "arrival_ms": lag.arrival_ms,
    }


def dirty_by_partition(dirty_clients: DirtyClients) -> dict[Place, list[dict[str, object]]]:
    """The clients that sent most bad times to each partition, as `/api/dirty` tells them."""
    found: dict[Place, list[dict[str, object]]] = {}
    for each in cast("list[dict[str, object]]", dirty_clients.report()["clients"]):
        place = cast("str", each["topic"]), cast("int", each["partition"])
        entries = found.setdefault(place, [])
        if len(entries) < CLIENTS_OF_ONE:
            entries.append(offender_entry(each))
    return found
