"""CreateTopics: every topic is judged by itself; those that pass are made together."""

from collections import Counter
from typing import NamedTuple

from broker.quotas.mutations import Allowance
from broker.quotas.service import Quotas
from broker.runtime.documents import on_the_newest
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.slowly import slowly
from broker.runtime.wire_error import wire_error
from broker.topics.creation import TopicPlan, TopicRules
from broker.topics.new_topic import NewTopic
from broker.topics.topic_catalog import TopicCatalog
from config.store import ConfigStore
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

ANSWERED_AT_ONCE = 10  # topics with all of their settings, until others may run
CONFIGS_SINCE_VERSION = 5
REFUSES_BY_QUOTA_SINCE_VERSION = 6


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    config: ConfigStore
    probes: BrokerProbes
    rules: TopicRules
    quotas: Quotas


Context = RequestContext[Services]


async def handle(request: CreateTopicsRequest, context: Context) -> CreateTopicsResponse:
    """One result per name; a name that stands in the request twice is refused."""
    context.ends_with_client = True
    topics = context.services.topics
    strict = context.api_version >= REFUSES_BY_QUOTA_SINCE_VERSION
    allowance = context.services.quotas.allowance(context, strict=strict)
    creation = Creation(request, context, allowance)
    try:
        await on_the_newest(topics.authority, topics.changing, creation.run)
    except StorageError as error:
        creation.refuse_all(wire_error(error))
    return CreateTopicsResponse(throttle_time_ms=allowance.rest_ms, topics=await creation.results())


class Creation:
    """The topics of one request; in a fleet they are judged again when another node was faster."""

    def __init__(
        self, request: CreateTopicsRequest, context: Context, allowance: Allowance
    ) -> None:
        """Nothing is judged."""
        self._request = request
        self._context = context
        self._allowance = allowance
        self._asked = Counter(topic.name for topic in request.topics)
        self._planned: dict[str, NewTopic] = {}
        self._errors: dict[str, KafkaError] = {}
        self._counted = self._paid = 0

    async def run(self) -> None:
        """Judges all, then makes those that pass. Hold `changing`. StorageError."""
        services = self._context.services
        self._errors, self._counted = {}, 0
        plan = services.rules.plan(self._count)
        sees = self._context.sees
        may_create_any = sees(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        for number, topic in enumerate(self._request.topics):
            await plan.breathe(number)
            try:
                _check_once(topic.name, self._asked)
                if not may_create_any:
                    _check_right(topic.name, self._context)
                _judge(topic, plan, self._context)
            except KafkaError as error:
                self._errors[topic.name] = error
        self._planned = {each.name: each for each in plan.topics}
        self._context.ends_with_client = False
        if not self._request.validate_only:
            await services.topics.create(plan.topics)

    def refuse_all(self, error: KafkaError) -> None:
        """None of those that passed was made."""
        self._errors |= dict.fromkeys(self._planned.keys() - self._errors.keys(), error)

    async def results(self) -> list[CreatableTopicResult]:
        """One for each name, in the order of the request."""
        return [
            _refusal(name, self._errors[name], self._context)
            if name in self._errors
            else _success(self._planned[name], self._context)
            async for name in slowly(self._asked, ANSWERED_AT_ONCE)
        ]

    def _count(self, partitions: int) -> None:
        """Takes from the allowance what an earlier round has not taken. KafkaError as that has."""
        if self._counted + partitions > self._paid:
            self._allowance.take(self._counted + partitions - self._paid)
            self._paid = self._counted + partitions
        self._counted += partitions


def _check_once(name: str, asked: Counter[str]) -> None:
    if asked[name] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def _check_right(name: str, context: Context) -> None:
    if not context.may(AclOperation.CREATE, ResourceType.TOPIC, name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def _judge(topic: CreatableTopic, plan: TopicPlan, context: Context) -> None:
    assignments = {each.partition_index: each.broker_ids for each in topic.assignments}
    if len(assignments) != len(topic.assignments):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned more than once."
        )
    count = context.services.rules.partition_count_of(
        topic.num_partitions, topic.replication_factor, assignments
    )
    overrides = {each.name: each.value for each in topic.configs}
    for key, value in overrides.items():
        if value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {key}"
            )
    plan.add(topic.name, count, overrides)


def _success(plan: NewTopic, context: Context) -> CreatableTopicResult:
    if not context.sees(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, plan.name):
        return CreatableTopicResult(
            name=plan.name,
            topic_id=plan.topic_id,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            num_partitions=-1,
            replication_factor=-1,
            configs=None if context.api_version >= CONFIGS_SINCE_VERSION else [],
        )
    return CreatableTopicResult(
        name=plan.name,
        topic_id=plan.topic_id,
        num_partitions=plan.partition_count,
        replication_factor=1,
        configs=_configs(plan, context) if context.api_version >= CONFIGS_SINCE_VERSION else [],
    )


def _configs(plan: NewTopic, context: Context) -> list[CreatableTopicConfigs]:
    """The settings as they are; for `validate_only` as they would be, in the same words."""
    return [
        CreatableTopicConfigs(
            name=each.name,
            value=each.value,
            read_only=each.read_only,
            config_source=each.source,
            is_sensitive=each.sensitive,
        )
        for each in context.services.config.describe_topic_with(plan.name, plan.overrides)
    ]


def _refusal(name: str, error: KafkaError, context: Context) -> CreatableTopicResult:
    context.count_error(error.code)
    return CreatableTopicResult(
        name=name, error_code=error.code, error_message=error.message, configs=[]
    )
