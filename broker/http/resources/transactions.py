"""/api/transactions: which transactional ids there are, and what is open, since when, and where.

An open transaction holds readers of committed records up in all its partitions.
"""

from typing import TYPE_CHECKING

from broker.http.port.messages import ApiError
from broker.http.port.parameters import FLAG, Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.transactions.transactional import Transactional
from config.quantities import instant, instant_or_none

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices

MAX_IDS = 1000


def _transactions(broker: "HttpServices", asked: Asked) -> object:
    found = dict(broker.transactions.ids)
    still_open = dict(broker.transactions.steps.open)
    wanted = still_open if asked.fields["open"] else found
    names = sorted(name for name in wanted if name > asked.fields["after"])
    page = names[: asked.fields["limit"]]
    return {
        "transactions": [_summary(broker, wanted[name]) for name in page],
        "open": len(still_open),
        "ids": len(found),
        "loading": broker.transactions.loading.is_under_way,
        "ended": dict(broker.transactions.steps.ended),
        "next": page[-1] if len(names) > len(page) else None,
    }


def _transaction(broker: "HttpServices", asked: Asked) -> object:
    name = asked.path["transaction"]
    owner = broker.transactions.ids.get(name)
    if owner is None:
        raise ApiError(
            404, "unknown_transaction", f"Nobody uses the id {name!r}: see /api/transactions"
        )
    return {
        **_summary(broker, owner),
        "partition_states": [
            _partition(broker, *place) for place in sorted(owner.facts.partitions)
        ],
    }


def _summary(broker: "HttpServices", owner: Transactional) -> dict[str, object]:
    facts = owner.facts
    is_open = owner.is_open
    age_ms = broker.clock.now_ms() - facts.started_ms if is_open else None
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


def _partition(broker: "HttpServices", topic: str, index: int) -> dict[str, object]:
    partition = broker.topics.image.partition(topic, index)
    snapshot = None if partition is None else partition.log.snapshot
    return {
        "topic": topic,
        "partition": index,
        "last_stable_offset": None if snapshot is None else snapshot.last_stable_offset,
        "high_watermark": None if snapshot is None else snapshot.high_watermark,
    }


ROUTES = (
    HttpRoute(
        "GET",
        "/api/transactions",
        "The transactional ids in the order of their names, a page at a time: what is open, and "
        "since when.",
        read=_transactions,
        parameters=(
            Parameter("open", FLAG, "true: those that are open alone", default=False),
            Parameter("after", ParameterKind(lambda text, _: text), "Begin behind this name", ""),
            Parameter("limit", count(1, MAX_IDS), "Ids in the answer", MAX_IDS),
        ),
    ),
    HttpRoute(
        "GET",
        "/api/transactions/{transaction}",
        "One transactional id: its transaction, the partitions in it, and how far each may be "
        "read.",
        read=_transaction,
    ),
)
