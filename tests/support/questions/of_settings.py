"""Questions about settings: what is taken, refused and shown, key by key."""

from typing import Any

from protocol.apis import alter_configs, create_topics, describe_configs
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.apis.list_config_resources import ListConfigResourcesRequest
from tests.support.questions.question import Question
from tests.support.worlds.handler_world import altered

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
NODE = "1"
SET, DELETE, APPEND = range(3)


def step(kind: int, name: str, key: str, value: str | None, **how: Any) -> Question:
    """One key: set, or taken back where `value` is None; `+x` appends x."""
    operation = DELETE if value is None else APPEND if value.startswith("+") else SET
    text = value.removeprefix("+") if value is not None else None
    resource = altered(kind, name, [(key, operation, text)])
    request = IncrementalAlterConfigsRequest(resources=[resource])
    what = f"{name or 'every'} {key} {'taken back' if value is None else '= ' + value}"
    return Question(what, 1, lambda _: request, **how)


def steps(kind: int, name: str, key: str, *values: str | None, **how: Any) -> list[Question]:
    """One key, several times."""
    return [step(kind, name, key, value, **how) for value in values]


def create(name: str, **settings: str) -> Question:
    """A topic with these settings, with underscores for dots."""
    configs = [
        create_topics.CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in settings.items()
    ]
    topic = create_topics.CreatableTopic(
        name=name, num_partitions=1, replication_factor=1, configs=configs
    )
    request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    what = f"create {name} {' '.join(f'{key}={value}' for key, value in settings.items())}"
    shown = tuple(each.name for each in configs)
    return Question(what.strip(), 7, lambda _: request, own_words=True, shown=shown)


def show(kind: int, name: str, *keys: str, **how: Any) -> Question:
    """These settings of a resource, with where they come from."""
    resource = describe_configs.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = describe_configs.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    what = f"describe {kind} {name} {' '.join(keys)}"
    return Question(what.strip(), 4, lambda _: request, shown=keys or None, **how)


def replace(kind: int, name: str, **settings: str) -> Question:
    """These settings of a resource and no others, with underscores for dots."""
    configs = [
        alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
        for key, value in settings.items()
    ]
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource])
    what = f"replace {kind} {name or 'none'} {settings}"
    return Question(what, 2, lambda _: request, own_words=True)


def list_resources(*kinds: int, version: int = 1) -> Question:
    """The resources of these kinds, or of all."""
    request = ListConfigResourcesRequest(resource_types=list(kinds))
    return Question(f"list v{version} {list(kinds)}", version, lambda _: request, in_any_order=True)
