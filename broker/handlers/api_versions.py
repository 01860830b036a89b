"""ApiVersions: what this broker serves, read from the routes, so that it cannot drift from them.

A request of a version we do not know never comes here: the dispatcher answers it with a v0 body
and UNSUPPORTED_VERSION (35), as clients expect. `metadata.version` tells tools (kafka-ui) which
Kafka we resemble.
"""

import re
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.server.client_software import ClientSoftware
from broker.server.features import FeatureLevels, features_here
from protocol.api import Api
from protocol.apis.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from protocol.errors import ErrorCode

CLIENT_SOFTWARE_SINCE_VERSION = 3

_CLIENT_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    software: ClientSoftware
    served: tuple[Api, ...]
    feature_levels: FeatureLevels


Context = RequestContext[Services]


def handle(request: ApiVersionsRequest, context: Context) -> ApiVersionsResponse:
    """The served APIs and their versions; INVALID_REQUEST (42) for a nonsense client name."""
    if not _names_its_software(request, context):
        context.count_error(ErrorCode.INVALID_REQUEST)
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    _keep_software(request, context)
    services = context.services
    levels = services.feature_levels
    return ApiVersionsResponse(
        api_keys=api_keys(context),
        supported_features=[
            SupportedFeatureKey(name=each.name, min_version=each.oldest, max_version=each.level)
            for each in features_here(services.served, levels.supported).values()
        ],
        finalized_features_epoch=levels.epoch,
        finalized_features=[
            FinalizedFeatureKey(
                name=each.name, min_version_level=each.level, max_version_level=each.level
            )
            for each in features_here(services.served, levels.finalized).values()
        ],
    )


def _keep_software(request: ApiVersionsRequest, context: Context) -> None:
    """For Metadata, and for subscriptions to metrics of clients (KIP-714)."""
    if context.api_version >= CLIENT_SOFTWARE_SINCE_VERSION:
        context.services.software.named(
            context.connection_id, request.client_software_name, request.client_software_version
        )


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
