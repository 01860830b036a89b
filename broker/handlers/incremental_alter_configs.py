"""IncrementalAlterConfigs: sets, deletes, or edits lists; what is not named stays as it is."""

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
from config.alter import Alteration, Operation
from config.resources.kinds import ResourceKind
from config.store import ConfigStore, SettingsChange
from protocol.acls import AclOperation, ResourceType
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    probes: BrokerProbes
    resources: ConfigResources


Context = RequestContext[Services]


async def handle(
    request: IncrementalAlterConfigsRequest, context: Context
) -> IncrementalAlterConfigsResponse:
    """All keys of a resource change together or not at all."""
    config = context.services.config
    context.asks(AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER)

    def prepare(resource: AlterConfigsResource) -> SettingsChange:
        refuse_logger(resource, ErrorCode.INVALID_CONFIG)
        alterations = [_alteration(each) for each in settings_of(resource)]
        return config.prepare_alteration(
            ResourceKind(resource.resource_type), resource.resource_name, alterations
        )

    outcomes = await context.services.resources.alter_each(
        request.resources,
        prepare,
        partial(require_on_resource, operation=AclOperation.ALTER_CONFIGS, context=context),
        validate_only=request.validate_only,
    )
    responses = alter_responses(AlterConfigsResourceResponse, request.resources, outcomes, context)
    return IncrementalAlterConfigsResponse(responses=responses)


def _alteration(config: AlterableConfig) -> Alteration:
    try:
        operation = Operation(config.config_operation)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown operation {config.config_operation}"
        ) from None
    return Alteration(config.name, operation, config.value)
