"""DescribeConfigs: the settings of topics and of this broker, with where each value comes from."""

from broker.config_resources import TOPIC, check_resource
from broker.context import RequestContext
from config.describe import Described
from protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.errors import KafkaError


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    """Every setting of each resource, or those asked for; unknown keys have no entry."""
    return DescribeConfigsResponse(
        results=[_describe(resource, request, context) for resource in request.resources]
    )


def _describe(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResult:
    try:
        check_resource(resource, context.broker)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeConfigsResult(
            error_code=error.code,
            error_message=error.message,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
    config = context.broker.config
    names = resource.configuration_keys or None  # an empty list asks for everything, as in Kafka
    if resource.resource_type == TOPIC:
        described = config.describe_topic(resource.resource_name, names)
    else:
        described = config.describe_broker(resource.resource_name, names)
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
