"""UpdateFeatures 0-2: raises or lowers the levels of features (KIP-584).

0: a flag allows to lower. 1: the kind of change, and validation alone (KIP-778). 2: one result for
the whole, none for each feature.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String


@message(flexible_from=0)
class FeatureUpdateKey:
    """A feature and the level that it is to have. Kinds: 1 raise, 2 lower safely, 3 lower."""

    feature: str = field(String)
    max_version_level: int = field(Int16)
    allow_downgrade: bool = field(Boolean, until=0)
    upgrade_type: int = field(Int8, since=1, default=1)


@message(flexible_from=0)
class UpdateFeaturesRequest:
    """The changes; `timeout_ms` in milliseconds."""

    timeout_ms: int = field(Int32, default=60_000)
    feature_updates: list[FeatureUpdateKey] = field(Array(FeatureUpdateKey))
    validate_only: bool = field(Boolean, since=1)


@message(flexible_from=0)
class UpdatableFeatureResult:
    """The result of one feature."""

    feature: str = field(String, until=1)
    error_code: int = field(Int16, until=1)
    error_message: str | None = field(String, until=1, nullable=True, default="")


@message(flexible_from=0)
class UpdateFeaturesResponse:
    """The result of the whole: all changes are made, or none."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default="")
    results: list[UpdatableFeatureResult] = field(Array(UpdatableFeatureResult), until=1)


API = Api(57, "UpdateFeatures", 0, 2, UpdateFeaturesRequest, UpdateFeaturesResponse)
