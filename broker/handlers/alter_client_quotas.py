"""AlterClientQuotas: sets and removes limits; durable when it is answered (KIP-546).

Each entity counts by itself: one that is refused changes nothing, the others are stored together.
"""

from collections import Counter
from typing import NamedTuple

from broker.quotas.service import Quotas
from broker.quotas.table import LEAST_OF_DEFAULTS, Entity, QuotaTable, alter, entity_of
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryResult,
)
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

Outcomes = dict[Entity, KafkaError | None]


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    quotas: Quotas


Context = RequestContext[Services]


async def handle(request: AlterClientQuotasRequest, context: Context) -> AlterClientQuotasResponse:
    """One result per entity, in the order of the request."""
    quotas = context.services.quotas
    if not context.may(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        denied = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        entries = [_result(_entity(each), denied, context) for each in request.entries]
        return AlterClientQuotasResponse(entries=entries)
    outcomes: Outcomes = {}

    def altered(before: QuotaTable) -> QuotaTable:
        nonlocal outcomes
        after, outcomes = _altered(before, request.entries)
        return before if request.validate_only else after

    try:
        await quotas.change(altered)
    except StorageError as fault:
        error = wire_error(fault)
        outcomes = {entity: before or error for entity, before in outcomes.items()}
    return AlterClientQuotasResponse(
        entries=[_result(entity, error, context) for entity, error in outcomes.items()]
    )


def _altered(table: QuotaTable, entries: list[EntryData]) -> tuple[QuotaTable, Outcomes]:
    """The table with every entry that can be, and what became of each."""
    draft = dict(table.entries)
    outcomes: Outcomes = {}
    named = [_entity(entry) for entry in entries]
    times = Counter(named)
    for entity, entry in zip(named, entries, strict=True):
        try:
            _check_named_once(times[entity])
            changes = _changes(entry)
            _check_leaves_room(entity, changes)
            alter(draft, entity, changes)
        except KafkaError as error:
            outcomes[entity] = error
        else:
            outcomes[entity] = None
    return QuotaTable(draft), outcomes


def _entity(entry: EntryData) -> Entity:
    return entity_of((part.entity_type, part.entity_name) for part in entry.entity)


def _check_named_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Ignoring an entity that is named twice")


def _changes(entry: EntryData) -> dict[str, float | None]:
    changes = {op.key: None if op.remove else op.value for op in entry.ops}
    if len(changes) < len(entry.ops):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A quota key is named twice")
    return changes


def _check_leaves_room(entity: Entity, changes: dict[str, float | None]) -> None:
    """A limit for everybody leaves enough for an administrator to take it back."""
    if any(name is not None for _, name in entity):
        return
    for key, value in changes.items():
        least = LEAST_OF_DEFAULTS.get(key)
        if least is not None and value is not None and 0 < value < least:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The default of {key} must be at least {least}; a smaller one names its entity",
            )


def _result(entity: Entity, error: KafkaError | None, context: Context) -> EntryResult:
    result = EntryResult(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
    )
    if error is not None:
        context.count_error(error.code)
        result.error_code, result.error_message = error.code, error.message
    return result
