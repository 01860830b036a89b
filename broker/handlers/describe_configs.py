"""DescribeConfigs: the settings of a resource, with where each value comes from."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from broker.runtime.answers import AnswerRoom, Answers, asked_once
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.config_resources import ConfigResources, require_on_resource
from config.describe import Described
from config.resources.kinds import ResourceKind
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.errors import KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    probes: BrokerProbes
    answers: Answers
    resources: ConfigResources


Context = RequestContext[Services]


def handle(
    request: DescribeConfigsRequest, context: Context
) -> DescribeConfigsResponse | Deferred[DescribeConfigsResponse]:
    """Every setting of each resource, or those asked for; unknown keys have no entry.

    A resource that is named twice is described once.
    """
    context.asks(AclOperation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)
    return context.services.answers.make(
        partial(_answers, request, context),
        lambda results: DescribeConfigsResponse(results=results),
    )


def _answers(
    request: DescribeConfigsRequest, context: Context, room: AnswerRoom
) -> Iterator[DescribeConfigsResult]:
    once = asked_once(request.resources, lambda each: (each.resource_type, each.resource_name))
    for resource in once:
        yield _describe(resource, request, context, room)


def _described(
    resource: DescribeConfigsResource, context: Context, room: AnswerRoom
) -> Sequence[Described]:
    require_on_resource(resource, AclOperation.DESCRIBE_CONFIGS, context)
    context.services.resources.check(resource)
    room.take(1)
    config = context.services.config
    names = frozenset(resource.configuration_keys or ()) or None  # none asks for all, as in Kafka
    kind = ResourceKind(resource.resource_type)
    described = config.describe(kind, resource.resource_name, names)
    for each in described:
        room.take(1 + len(each.synonyms), len(each.documentation) + len(each.value or ""))
    return described


def _describe(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    context: Context,
    room: AnswerRoom,
) -> DescribeConfigsResult:
    try:
        described = _described(resource, context, room)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeConfigsResult(
            error_code=error.code,
            error_message=error.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    return DescribeConfigsResult(
        error_message="",
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_entry(each, request) for each in described],
    )


def _entry(described: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = described.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=described.read_only,
        is_default=described.is_default,
        config_source=described.source,
        is_sensitive=described.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in synonyms
        ],
        config_type=described.kafka_type,
        documentation=described.documentation if request.include_documentation else None,
    )
