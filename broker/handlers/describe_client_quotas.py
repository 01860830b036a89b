"""DescribeClientQuotas: the limits of the entities that a filter lets through (KIP-546)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.quotas.service import Quotas
from broker.quotas.table import CLIENT_ID, IP, USER, Entity, Limits
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from protocol.errors import ErrorCode, KafkaError

EXACT, DEFAULT, ANY = 0, 1, 2
MATCH_NAMES = {
    EXACT: "MATCH_TYPE_EXACT",
    DEFAULT: "MATCH_TYPE_DEFAULT",
    ANY: "MATCH_TYPE_SPECIFIED",
}


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    quotas: Quotas


Context = RequestContext[Services]


def handle(request: DescribeClientQuotasRequest, context: Context) -> DescribeClientQuotasResponse:
    """All that match; INVALID_REQUEST (42) or UNSUPPORTED_VERSION (35) for a filter that cannot."""
    try:
        context.require(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
        wanted = _filter(request.components)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message)
    entries = context.services.quotas.table.entries.items()
    return DescribeClientQuotasResponse(
        entries=[
            _entry(entity, limits)
            for entity, limits in entries
            if wanted.accepts(entity, strict=request.strict)
        ]
    )


@dataclass(slots=True)
class _Filter:
    """Conditions on the parts of an entity."""

    names: dict[str, str | None] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)

    def accepts(self, entity: Entity, *, strict: bool) -> bool:
        """True for an entity with all parts asked for, and when `strict` no others."""
        parts = dict(entity)
        if strict and len(parts) != len(self.names) + len(self.kinds):
            return False
        return self.kinds <= parts.keys() and all(
            kind in parts and parts[kind] == name for kind, name in self.names.items()
        )


def _filter(components: Iterable[ComponentData]) -> _Filter:
    wanted = _Filter()
    for each in components:
        kind = each.entity_type
        if not kind:
            raise _refused("Invalid empty entity type.")
        if kind in wanted.names or kind in wanted.kinds:
            raise _refused(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in {USER, CLIENT_ID, IP}:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _check_match(each)
        if each.match_type == ANY:
            wanted.kinds.add(kind)
        else:
            wanted.names[kind] = each.match
    _check_combination(wanted.kinds | wanted.names.keys())
    return wanted


def _check_match(component: ComponentData) -> None:
    name = MATCH_NAMES.get(component.match_type)
    if name is None:
        raise _refused(f"Unknown match type {component.match_type}")
    if component.match_type == EXACT and component.match is None:
        raise _refused(f"Request specified {name}, but set match string to null.")
    if component.match_type != EXACT and component.match is not None:
        raise _refused(f"Request specified {name}, but also specified a match string.")


def _check_combination(kinds: set[str]) -> None:
    if IP in kinds and len(kinds) > 1:
        raise _refused(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def _entry(entity: Entity, limits: Limits) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
        values=[ValueData(key=key, value=value) for key, value in limits.items()],
    )


def _refused(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
