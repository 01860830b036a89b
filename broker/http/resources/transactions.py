"""/api/transactions: which transactional ids there are, and what is open, since when, and where.

An open transaction holds readers of committed records up in all its partitions.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker.http.port.caller import Caller, Needs
from broker.http.port.messages import ApiError
from broker.http.port.parameters import FLAG, Asked, Parameter, page_of
from broker.http.port.route import HttpRoute
from broker.topics.topic_catalog import TopicCatalog
from broker.transactions.coordinator import TransactionCoordinator
from broker.transactions.transactional import Transactional
from config.quantities import instant, instant_or_none
from protocol.acls import AclOperation, ResourceType
from storage.env import Clock

MAX_IDS = 1000


class TransactionServices(NamedTuple):
    """The services that the answers are made with."""

    transactions: TransactionCoordinator
    topics: TopicCatalog
    clock: Clock


def _transactions(services: TransactionServices, asked: Asked) -> object:
    coordinator, caller = services.transactions, asked.caller
    found = _seen(coordinator.ids, caller)
    still_open = _seen(coordinator.steps.open, caller)
    wanted = still_open if asked.fields["open"] else found
    names = sorted(name for name in wanted if name > asked.fields["after"])
    page = names[: asked.fields["limit"]]
    return {
        "transactions": [_summary(services, wanted[name]) for name in page],
        "open": len(still_open),
        "ids": len(found),
        "loading": services.transactions.loading.is_under_way,
        "ended": dict(services.transactions.steps.ended),
        "next": page[-1] if len(names) > len(page) else None,
    }


def _seen(ids: Mapping[str, Transactional], caller: Caller) -> dict[str, Transactional]:
    """Those that the caller may know of."""
    found = dict(ids)
    return {name: found[name] for name in caller.seen(ResourceType.TRANSACTIONAL_ID, found)}


def _transaction(services: TransactionServices, asked: Asked) -> object:
    name = asked.path["transaction"]
    is_seen = asked.caller.sees(ResourceType.TRANSACTIONAL_ID, name)
    owner = services.transactions.ids.get(name)
    if owner is None or not is_seen:
        raise ApiError(
            404, "unknown_transaction", f"Nobody uses the id {name!r}: see /api/transactions"
        )
    return {
        **_summary(services, owner),
        "partition_states": [
            _partition(services, *place)
            for place in sorted(owner.facts.partitions)
            if asked.caller.sees_topic(place[0])
        ],
    }


def _summary(services: TransactionServices, owner: Transactional) -> dict[str, object]:
    facts = owner.facts
    is_open = owner.is_open
    age_ms = services.clock.now_ms() - facts.started_ms if is_open else None
    return {
        "transactional_id": owner.transactional_id,
        "state": facts.state.value,
        "producer_id": facts.producer_id,
        "producer_epoch": facts.producer_epoch,
        "timeout_ms": facts.timeout_ms,
        "began": instant_or_none(facts.started_ms) if is_open else None,
        "age_ms": age_ms,
        "last_used": instant(facts.updated_ms),
        "partitions": len(facts.partitions),
    }


def _partition(services: TransactionServices, topic: str, index: int) -> dict[str, object]:
    partition = services.topics.image.partition(topic, index)
    snapshot = None if partition is None else partition.log.snapshot
    return {
        "topic": topic,
        "partition": index,
        "last_stable_offset": None if snapshot is None else snapshot.last_stable_offset,
        "high_watermark": None if snapshot is None else snapshot.high_watermark,
    }


ROUTES = (
    HttpRoute(
        TransactionServices,
        "GET",
        "/api/transactions",
        "The transactional ids in the order of their names, a page at a time: what is open, and "
        "since when.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
        read=_transactions,
        parameters=(
            Parameter("open", FLAG, "true: those that are open alone", default=False),
            *page_of("Ids", MAX_IDS),
        ),
    ),
    HttpRoute(
        TransactionServices,
        "GET",
        "/api/transactions/{transaction}",
        "One transactional id: its transaction, the partitions in it, and how far each may be "
        "read.",
        needs=Needs(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transaction"),
        read=_transaction,
    ),
)
