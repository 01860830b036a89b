"""UpdateFeatures: every feature has the highest level that this broker serves, and keeps it.

Judged as by a Kafka that stands alone: a level that a feature has is given again, and one that it
cannot have is INVALID_UPDATE_VERSION (95). Where Kafka would lower a level, this broker answers
FEATURE_UPDATE_FAILED (96). One change that cannot be refuses all.
"""

from collections.abc import Mapping
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.features import METADATA_VERSION, Feature, FeatureLevels, features_here
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.api import Api
from protocol.apis.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from protocol.errors import ErrorCode, KafkaError

RAISE, LOWER_SAFELY, LOWER = 1, 2, 3
MAX_NAME = 100  # characters of a name that a refusal repeats


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    served: tuple[Api, ...]
    feature_levels: FeatureLevels


Context = RequestContext[Services]


def handle(request: UpdateFeaturesRequest, context: Context) -> UpdateFeaturesResponse:
    """Error of the first change that cannot be; what may be validated is what may be done."""
    features = features_here(context.services.served, context.services.feature_levels.finalized)
    try:
        context.require(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        for each in request.feature_updates:
            _check(each, features)
    except KafkaError as error:
        context.count_error(error.code)
        return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
    none = ErrorCode.NONE
    return UpdateFeaturesResponse(
        error_message=None,
        results=[
            UpdatableFeatureResult(feature=each.feature, error_code=none, error_message=none.name)
            for each in request.feature_updates
        ],
    )


def _check(update: FeatureUpdateKey, features: Mapping[str, Feature]) -> None:
    """Raises KafkaError for a change that would be one, or cannot be."""
    if update.upgrade_type not in {RAISE, LOWER_SAFELY, LOWER}:
        raise _refused(update, f"there is no kind of change {update.upgrade_type}")
    if update.max_version_level < 0:
        raise _refused(update, "a level is not less than 0")
    feature = features.get(update.feature)
    if feature is None:
        raise _refused(update, "this broker has no such feature")
    if not feature.oldest <= update.max_version_level <= feature.level:
        raise _refused(update, f"this broker knows levels {feature.oldest} to {feature.level}")
    if update.max_version_level < feature.level:
        _check_lower(update, feature)


def _check_lower(update: FeatureUpdateKey, feature: Feature) -> None:
    """Raises KafkaError: no level is ever lowered."""
    if update.upgrade_type == RAISE:
        raise _refused(update, f"it is {feature.level}, and a raise does not lower it")
    if feature.name == METADATA_VERSION:
        raise _refused(update, f"it is {feature.level}, and metadata could be lost")
    raise KafkaError(
        ErrorCode.FEATURE_UPDATE_FAILED,
        f"Nothing was changed: {feature.name} stays at {feature.level}. The levels of features "
        "follow from the version of this broker and cannot be lowered",
    )


def _refused(update: FeatureUpdateKey, why: str) -> KafkaError:
    name, level = update.feature[:MAX_NAME], update.max_version_level
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Nothing was changed: {name} cannot have level {level}: {why}",
    )
