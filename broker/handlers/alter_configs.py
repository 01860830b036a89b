"""AlterConfigs: replaces all settings of a resource; what is not named returns to its default."""

from functools import partial
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.config_resources import (
    ConfigResources,
    alter_responses,
    refuse_logger,
    require_on_resource,
    settings_of,
)
from config.resources.kinds import ResourceKind
from config.store import ConfigStore, SettingsChange
from protocol.acls import AclOperation, ResourceType
from protocol.apis.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    probes: BrokerProbes
    resources: ConfigResources


Context = RequestContext[Services]


async def handle(request: AlterConfigsRequest, context: Context) -> AlterConfigsResponse:
    """All keys of a resource change together or not at all."""
    config = context.services.config
    context.asks(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)

    def prepare(resource: AlterConfigsResource) -> SettingsChange:
        refuse_logger(resource, ErrorCode.INVALID_REQUEST)
        configs = settings_of(resource)
        overrides = {each.name: each.value for each in configs}
        if len(overrides) != len(configs):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "A key is named twice.")
        return config.prepare(
            ResourceKind(resource.resource_type), resource.resource_name, overrides
        )

    outcomes = await context.services.resources.alter_each(
        request.resources,
        prepare,
        partial(require_on_resource, operation=AclOperation.ALTER_CONFIGS, context=context),
        validate_only=request.validate_only,
    )
    responses = alter_responses(AlterConfigsResourceResponse, request.resources, outcomes, context)
    return AlterConfigsResponse(responses=responses)
