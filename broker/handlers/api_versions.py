"""ApiVersions: what this broker serves, read from the routes, so that it cannot drift from them.

A request of a version we do not know never comes here: the dispatcher answers it with a v0 body
and UNSUPPORTED_VERSION (35), as clients expect. `metadata.version` tells tools (kafka-ui) which
Kafka we resemble.
"""

import re
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.api import Api
from protocol.apis.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from protocol.errors import ErrorCode


class Feature(NamedTuple):
    """A feature with levels, and the API without which it is not served."""

    name: str
    oldest: int
    level: int
    api_key: int


FEATURES = (
    Feature("metadata.version", 7, 30, 3),  # 3.3-IV3 to 4.3-IV0, of Kafka 4.3; Metadata
    Feature("group.version", 0, 1, 68),  # KIP-848; ConsumerGroupHeartbeat
    Feature("share.version", 0, 1, 78),  # KIP-932; ShareFetch
    Feature("transaction.version", 0, 2, 26),  # every end takes an epoch (KIP-890); EndTxn
)
CLIENT_SOFTWARE_SINCE_VERSION = 3

_CLIENT_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    served: tuple[Api, ...]
    feature_limits: tuple[tuple[str, int], ...]
    """Highest levels that are served, by feature, where that is not all."""


Context = RequestContext[Services]


def handle(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """The served APIs and their versions; INVALID_REQUEST (42) for a nonsense client name."""
    if not _names_its_software(request, context):
        context.count_error(ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=api_keys(context),
        supported_features=[
            SupportedFeatureKey(name=each.name, min_version=each.oldest, max_version=each.level)
            for each in _features(context)
        ],
        finalized_features_epoch=0,
        finalized_features=[
            FinalizedFeatureKey(
                name=each.name, min_version_level=each.level, max_version_level=each.level
            )
            for each in _features(context)
        ],
    )


def _features(context: Context) -> list[Feature]:
    served = {api.key for api in context.services.served}
    limits = dict(context.services.feature_limits)
    return [
        each._replace(level=min(each.level, limits.get(each.name, each.level)))
        for each in FEATURES
        if each.api_key in served
    ]


def api_keys(context: Context) -> list[ApiVersion]:
    """Every routed API, in the order of the keys."""
    return [
        ApiVersion(api_key=api.key, min_version=api.min_version, max_version=api.max_version)
        for api in context.services.served
    ]


def _names_its_software(request: ApiVersionsRequest, context: Context) -> bool:
    """KIP-511: both the name and the version of the client must be well-formed."""
    if context.api_version < CLIENT_SOFTWARE_SINCE_VERSION:
        return True
    return all(
        _CLIENT_SOFTWARE.fullmatch(text)
        for text in (request.client_software_name, request.client_software_version)
    )
