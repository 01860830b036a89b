"""DescribeClientQuotas 0-1: which limits users and clients have (KIP-546).

0. 1: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Float64, Int8, Int16, Int32, String


@message
class ComponentData:
    """Condition on one part of an entity."""

    entity_type: str = field(String)
    match_type: int = field(Int8, doc="0 this name, 1 the default, 2 any")
    match: str | None = field(String, nullable=True)


@message(flexible_from=1)
class DescribeClientQuotasRequest:
    """A filter; `strict` leaves out entities with parts that it does not name."""

    components: list[ComponentData] = field(Array(ComponentData))
    strict: bool = field(Boolean)


@message
class EntityData:
    """One part of an entity's name; null is the default."""

    entity_type: str = field(String)
    entity_name: str | None = field(String, nullable=True)


@message
class ValueData:
    """One limit."""

    key: str = field(String)
    value: float = field(Float64)


@message
class EntryData:
    """The limits of one entity."""

    entity: list[EntityData] = field(Array(EntityData))
    values: list[ValueData] = field(Array(ValueData))


@message(flexible_from=1)
class DescribeClientQuotasResponse:
    """The entities that match, or null and an error."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    entries: list[EntryData] | None = field(Array(EntryData), nullable=True)


API = Api(
    48, "DescribeClientQuotas", 0, 1, DescribeClientQuotasRequest, DescribeClientQuotasResponse
)
