"""ListConfigResources: what has settings, by kind (KIP-1142)."""

from collections.abc import Collection
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from config.resources.kinds import ResourceKind
from config.store import ConfigStore
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)
from protocol.errors import ErrorCode

KINDS_SINCE_VERSION = 1


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    topics: TopicCatalog
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: ListConfigResourcesRequest, context: Context) -> ListConfigResourcesResponse:
    """All topics and this broker; groups and subscriptions as far as they have settings.

    UNSUPPORTED_VERSION (35) for a kind without settings.
    """
    if not context.may(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return _refusal(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, context)
    kinds: set[int] = {*request.resource_types} or {*ResourceKind}
    if context.api_version < KINDS_SINCE_VERSION:
        kinds = {ResourceKind.CLIENT_METRICS}
    if not kinds <= {*ResourceKind}:
        return _refusal(ErrorCode.UNSUPPORTED_VERSION, context)
    return ListConfigResourcesResponse(
        config_resources=[
            ListedConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(kinds)
            for name in _names(ResourceKind(kind), context.services)
        ]
    )


def _names(kind: ResourceKind, services: Services) -> Collection[str]:
    if kind is ResourceKind.TOPIC:
        return services.topics.image.topics.keys()
    if kind in (ResourceKind.BROKER, ResourceKind.BROKER_LOGGER):
        return [str(services.config.broker_config.node_id)]
    return services.config.names_with_settings(kind)


def _refusal(code: ErrorCode, context: Context) -> ListConfigResourcesResponse:
    context.count_error(code)
    return ListConfigResourcesResponse(error_code=code)
