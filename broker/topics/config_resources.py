"""The resources that have settings on the wire, and how theirs are changed.

Shared by DescribeConfigs, IncrementalAlterConfigs and AlterConfigs, so that the three agree on
which resource exists and what a wrong one is called.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from broker.runtime.documents import on_the_newest
from broker.runtime.wire_error import wire_error
from broker.topics.creation import config_refusal
from broker.topics.names import audit_topics, check_name, check_not_internal
from config.errors import ConfigError
from config.resources.kinds import ResourceKind
from config.store import SettingsChange
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.runtime.request_context import RequestContext
    from broker.topics.removal_warning import RemovalForecast
    from broker.topics.topic_catalog import TopicCatalog
    from config.store import ConfigStore

TOPIC, BROKER, GROUP = ResourceKind.TOPIC, ResourceKind.BROKER, ResourceKind.GROUP
OF_THE_CLUSTER = frozenset((BROKER, ResourceKind.BROKER_LOGGER, ResourceKind.CLIENT_METRICS))
"""Brokers, their loggers and client metrics: rights to the cluster decide over their settings."""
WITHOUT_NAME: Mapping[int, str] = {
    GROUP: "Group name must not be empty",
    ResourceKind.CLIENT_METRICS: "Client metrics subscription name must not be empty",
    ResourceKind.BROKER_LOGGER: "Broker id must not be empty",
}
CONFIRM = "horolog.confirm"
"""Beside settings of a broker, with the value `true`: what topics lose by them is meant to go."""


class Entry(Protocol):
    """A setting as requests name it."""

    name: str
    value: str | None


E = TypeVar("E", bound=Entry)


class Resource(Protocol):
    """A resource as requests name it."""

    resource_type: int
    resource_name: str


class Altered(Resource, Protocol[E]):
    """A resource, and what it is to be set to."""

    configs: list[E]


R = TypeVar("R", bound=Altered[Any])
Response = TypeVar("Response")


def settings_of(resource: Altered[E]) -> list[E]:
    """The settings to change, without the confirmation. INVALID_CONFIG (40)."""
    if not is_confirmed(resource):
        return resource.configs
    if any(each.name == CONFIRM and each.value != "true" for each in resource.configs):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{CONFIRM} must be true")
    return [each for each in resource.configs if each.name != CONFIRM]


def is_confirmed(resource: Altered[Any]) -> bool:
    """True when the request confirms that a change of broker settings may delete data."""
    return resource.resource_type == BROKER and any(
        each.name == CONFIRM for each in resource.configs
    )


def refuse_logger(resource: Altered[Any], code: ErrorCode) -> None:
    """An error of this code for levels of loggers: none can be changed on the wire."""
    if resource.resource_type == ResourceKind.BROKER_LOGGER:
        names = ", ".join(each.name for each in resource.configs)
        raise KafkaError(code, f"Logger {names} does not exist!")


class Renewal(Protocol):
    """The certificates of listeners, which settings name."""

    async def prepare(
        self, change: SettingsChange, names: Collection[str]
    ) -> Callable[[], None] | None:
        """Checks the certificates that a change of a broker's settings is about.

        `names` are the settings of the request: one that is as before says that its file is to be
        read again. Gives what makes them count; raises ConfigError when one cannot be used.
        """


class ConfigResources:
    """The topics and the broker as resources with settings. Used on the event loop."""

    def __init__(
        self,
        topics: "TopicCatalog",
        config: "ConfigStore",
        forecast: "RemovalForecast",
        node_id: int,
    ) -> None:
        """`forecast` says what a change would take."""
        self._topics = topics
        self._config = config
        self._forecast = forecast
        self._node_id = node_id
        self.renewal: Renewal | None = None
        """None without a listener with TLS."""

    async def alter_each(
        self,
        resources: Sequence[R],
        prepare: Callable[[R], SettingsChange],
        check_right: Callable[[R], None],
        *,
        validate_only: bool,
    ) -> list[KafkaError | str]:
        """Changes each resource by itself; what became of it stands at its place in the answer.

        `check_right` raises for a resource that the client may not change.

        Text is for a client that was not refused: with `validate_only`, what would be removed.
        """
        asked = Counter(_identities(resources))
        outcomes: list[KafkaError | str] = []
        judged: dict[int, SettingsChange] = {}
        topics = self._topics
        for resource, identity in zip(resources, _identities(resources), strict=True):
            alter = partial(self._alter, resource, prepare, validate_only=validate_only)
            try:
                _check_asked_once(asked[identity])
                check_right(resource)
                change = await on_the_newest(topics.authority, topics.changing, alter)
            except KafkaError as error:
                outcomes.append(error)
            except ConfigError as error:
                outcomes.append(_refusal(resource, error))
            except StorageError as error:
                outcomes.append(wire_error(error))
            else:
                judged[len(outcomes)] = change
                outcomes.append("")
        if validate_only:
            for place, change in judged.items():
                outcomes[place] = await self._forecast.loss_warning(change)
        return outcomes

    async def _alter(
        self, resource: R, prepare: Callable[[R], SettingsChange], *, validate_only: bool
    ) -> SettingsChange:
        """Hold `changing`."""
        self.check(resource)
        self._check_not_audit(resource)
        change = prepare(resource)
        publish = await self._renewed(resource, change)
        if not validate_only:
            await self._check_confirmed(resource, change)
            await self._topics.alter_settings(change)
            publish()
        return change

    def check(self, resource: Resource) -> None:
        """Raises the error that answers for a resource that is not here."""
        name = resource.resource_name
        if resource.resource_type == TOPIC:
            check_name(name)
            if name not in self._topics.image.topics:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
                )
        elif resource.resource_type == BROKER:
            self._check_node(name, "", " or empty string,")
        elif resource.resource_type not in WITHOUT_NAME:
            raise _unsupported(resource.resource_type)
        elif not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, WITHOUT_NAME[resource.resource_type])
        elif resource.resource_type == ResourceKind.BROKER_LOGGER:
            self._check_node(name)

    def _check_node(self, name: str, other: str | None = None, or_other: str = "") -> None:
        """INVALID_REQUEST (42) for another broker's id."""
        if name not in {str(self._node_id), other}:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unexpected broker id, expected {self._node_id}{or_other} but received {name}",
            )

    async def _renewed(self, resource: Altered[Any], change: SettingsChange) -> Callable[[], None]:
        if resource.resource_type != BROKER or self.renewal is None:
            return _nothing
        names = {each.name for each in resource.configs}
        return await self.renewal.prepare(change, names) or _nothing

    async def _check_confirmed(self, resource: Altered[Any], change: SettingsChange) -> None:
        """POLICY_VIOLATION (44) when a broker's settings would take records and nobody said so."""
        if resource.resource_type != BROKER or is_confirmed(resource):
            return
        text = await self._forecast.loss_warning(change)
        if text:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"This {text}. If that is meant: add {CONFIRM}=true to the same request",
            )

    def _check_not_audit(self, resource: Resource) -> None:
        """A shorter retention would remove the traces; our other topics may change, as in Kafka."""
        audits, name = audit_topics(self._config.broker_config), resource.resource_name
        if resource.resource_type == TOPIC and name in audits:
            check_not_internal(name, self._topics.internal_topics)


def _nothing() -> None:
    """No certificate is renewed."""


def require_on_resource(
    resource: Resource, operation: AclOperation, context: "RequestContext[Any]"
) -> None:
    """The error for a resource whose settings the client may not see, or change.

    A kind of resource that Kafka does not know is INVALID_REQUEST (42), whoever asks.
    """
    name, kind = resource.resource_name, resource.resource_type
    if kind == TOPIC:
        context.require(operation, ResourceType.TOPIC, name)
    elif kind == GROUP:
        context.require(operation, ResourceType.GROUP, name)
    elif kind in OF_THE_CLUSTER:
        context.require(operation, ResourceType.CLUSTER, CLUSTER_NAME)
    else:
        raise _unsupported(kind)


def _unsupported(kind: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")


def alter_responses(
    kind: Callable[..., Response],
    resources: Sequence[Resource],
    outcomes: Iterable[KafkaError | str],
    context: "RequestContext[Any]",
) -> list[Response]:
    """The results as responses of `kind`, one for each resource, each error counted."""
    responses = []
    for resource, outcome in zip(resources, outcomes, strict=True):
        code = outcome.code if isinstance(outcome, KafkaError) else 0
        context.count_error(code)
        responses.append(
            kind(
                error_code=code,
                error_message=outcome.message if isinstance(outcome, KafkaError) else outcome,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return responses


def _refusal(resource: Resource, error: ConfigError) -> KafkaError:
    """Kafka has one code for whatever is wrong with a setting of a broker, two for a topic's."""
    if resource.resource_type == BROKER:
        return KafkaError(ErrorCode.INVALID_REQUEST, error.message)
    return config_refusal(error)


def _check_asked_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")


def _identities(resources: Iterable[Resource]) -> list[tuple[int, str]]:
    return [(each.resource_type, each.resource_name) for each in resources]
