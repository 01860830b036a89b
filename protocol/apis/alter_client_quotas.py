"""AlterClientQuotas 0-1: limits of users and clients (KIP-546).

0. 1: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Float64, Int16, Int32, String


@message
class EntityData:
    """One part of an entity's name; null is the default."""

    entity_type: str = field(String)
    entity_name: str | None = field(String, nullable=True)


@message
class OpData:
    """One limit, set or removed."""

    key: str = field(String)
    value: float = field(Float64)
    remove: bool = field(Boolean)


@message
class EntryData:
    """The changes of one entity."""

    entity: list[EntityData] = field(Array(EntityData))
    ops: list[OpData] = field(Array(OpData))


@message(flexible_from=1)
class AlterClientQuotasRequest:
    """Changes of quotas."""

    entries: list[EntryData] = field(Array(EntryData))
    validate_only: bool = field(Boolean)


@message
class EntryResult:
    """Result of one entity."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    entity: list[EntityData] = field(Array(EntityData))


@message(flexible_from=1)
class AlterClientQuotasResponse:
    """The results, an entity each."""

    throttle_time_ms: int = field(Int32)
    entries: list[EntryResult] = field(Array(EntryResult))


API = Api(49, "AlterClientQuotas", 0, 1, AlterClientQuotasRequest, AlterClientQuotasResponse)
