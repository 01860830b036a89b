"""Attempts to set the keys of the tier, in order: what is asked of a real Kafka and of ours alike.

A scene begins with a new broker; later attempts meet what earlier ones have set.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from protocol.apis import alter_configs, create_topics, incremental_alter_configs
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = range(3)
CREATE, STEP, REPLACE, ON_BROKER = "create", "step", "replace", "broker"
TIER = "remote.storage.enable"
COPY_OFF, DELETE_OFF = "remote.log.copy.disable", "remote.log.delete.on.disable"
MS, BYTES, LOCAL_MS, LOCAL_BYTES = (
    "retention.ms",
    "retention.bytes",
    "local.retention.ms",
    "local.retention.bytes",
)
POLICY = "cleanup.policy"
NODE_ID = 1
DYNAMIC_BROKER_CONFIG = 2
TOPIC_KEYS = (TIER, LOCAL_MS, LOCAL_BYTES, COPY_OFF, DELETE_OFF)
BROKER_KEYS = (
    "log.local.retention.bytes",
    "log.local.retention.ms",
    "remote.fetch.max.wait.ms",
    "remote.list.offsets.request.timeout.ms",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.copy.max.bytes.per.second",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.fetch.max.bytes.per.second",
    "remote.log.manager.task.interval.ms",
    "remote.log.reader.max.pending.tasks",
    "remote.log.reader.threads",
    "remote.log.storage.system.enable",
)


class Attempt(NamedTuple):
    """One change. In a step a value of None takes the key back, and `+x` appends `x`."""

    call: str
    name: str
    settings: Mapping[str, str | None]
    own_words: bool = False
    """True when our refusal has a text of its own: of bounds, and of brokers."""


def create(name: str, tier: str | None = "true", **settings: str) -> Attempt:
    """A topic, with the settings by the names that this module has for them."""
    own_words = settings.pop("own_words", "") == "yes"
    return Attempt(CREATE, name, _settings(tier, settings), own_words)


def step(name: str, tier: str | None = "", **settings: str | None) -> Attempt:
    """Single keys of a topic."""
    return Attempt(STEP, name, _settings(tier, settings))


def on_broker(**settings: str | None) -> Attempt:
    """Single keys of the broker, with underscores for dots."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return Attempt(ON_BROKER, str(NODE_ID), named, own_words=True)


def _settings(tier: str | None, named: Mapping[str, str | None]) -> dict[str, str | None]:
    keys = {each: globals()[each] for each in named}
    found: dict[str, str | None] = {} if tier == "" else {TIER: tier}
    return found | {keys[each]: value for each, value in named.items()}


WITHOUT_TIER = (
    create("off"),
    create("a", ""),
    step("a", "true"),
    create("no", "false"),
    create("local-only", "", MS="1000", LOCAL_MS="1001", BYTES="10", LOCAL_BYTES="11"),
    create("copy-off", "", COPY_OFF="true"),
    create("delete-off", "", DELETE_OFF="true"),
    step("a", COPY_OFF="true", DELETE_OFF="true", LOCAL_MS="5"),
    create("bad-local", "", LOCAL_MS="-3", own_words="yes"),
    on_broker(log_local_retention_ms="604800001"),
    on_broker(log_local_retention_ms="-1"),
    on_broker(log_local_retention_ms="1000"),
    on_broker(log_local_retention_ms=None),
)
"""Of a broker whose tier is off."""

WITH_TIER = (
    create("a"),
    create("compacted", POLICY="compact"),
    create("both", POLICY="compact,delete"),
    create("kept", POLICY=""),
    create("deleted", POLICY="delete"),
    create("ms-more", MS="1000", LOCAL_MS="1001"),
    create("ms-same", MS="1000", LOCAL_MS="1000"),
    create("ms-less", MS="1000", LOCAL_MS="0"),
    create("ms-unlimited", MS="1000", LOCAL_MS="-1"),
    create("ms-total", MS="1000", LOCAL_MS="-2"),
    create("ms-for-ever", MS="-1", LOCAL_MS="-1"),
    create("ms-for-ever-but-here", MS="-1", LOCAL_MS="5"),
    create("ms-over-default", LOCAL_MS="604800001"),
    create("ms-all-default", LOCAL_MS="604800000"),
    create("bytes-more", BYTES="1000", LOCAL_BYTES="1001"),
    create("bytes-same", BYTES="1000", LOCAL_BYTES="1000"),
    create("bytes-unlimited", BYTES="1000", LOCAL_BYTES="-1"),
    create("bytes-total", BYTES="1000", LOCAL_BYTES="-2"),
    create("bytes-zero", BYTES="0", LOCAL_BYTES="1"),
    create("bytes-for-ever", BYTES="-1", LOCAL_BYTES="-1"),
    create("bytes-negative", BYTES="-5", LOCAL_BYTES="-1"),
    create("bytes-only-here", LOCAL_BYTES="5"),
    create("both-more", MS="1", LOCAL_MS="2", BYTES="1", LOCAL_BYTES="2"),
    create("compacted-and-more", POLICY="compact", MS="1", LOCAL_MS="2"),
    create("no-tier-more", "false", MS="1000", LOCAL_MS="1001"),
    create("no-tier-compacted", "false", POLICY="compact", LOCAL_MS="1"),
    create("no-tier-copy-off", "", COPY_OFF="true"),
    create("no-tier-delete-off", "", DELETE_OFF="true"),
    create("copy-off", COPY_OFF="true"),
    create("copy-off-total", COPY_OFF="true", LOCAL_MS="-2", LOCAL_BYTES="-2"),
    create("copy-off-ms", COPY_OFF="true", MS="10", LOCAL_MS="5"),
    create("copy-off-ms-same", COPY_OFF="true", MS="10", LOCAL_MS="10"),
    create("copy-off-bytes", COPY_OFF="true", BYTES="10", LOCAL_BYTES="5"),
    create("copy-off-bytes-same", COPY_OFF="true", BYTES="10", LOCAL_BYTES="10"),
    create("copy-off-two", COPY_OFF="true", MS="9", LOCAL_MS="5", BYTES="9", LOCAL_BYTES="5"),
    create("bad-ms", LOCAL_MS="-3", own_words="yes"),
    create("bad-bytes", LOCAL_BYTES="-3", own_words="yes"),
    create("bad-tier", "maybe", own_words="yes"),
    create("bad-copy-off", COPY_OFF="1", own_words="yes"),
    step("a", "false"),
    step("a", None),
    Attempt(REPLACE, "a", {}),
    Attempt(REPLACE, "a", {MS: "5"}),
    Attempt(REPLACE, "a", {TIER: "false"}),
    step("a", POLICY="compact"),
    step("a", POLICY="+compact"),
    step("a", POLICY=""),
    step("a", POLICY=None),
    step("a", LOCAL_MS="5000"),
    step("a", MS="4999"),
    step("a", MS="-1"),
    step("a", MS="5000", LOCAL_BYTES="7"),
    step("a", BYTES="6"),
    step("a", BYTES="7"),
    step("a", COPY_OFF="true"),
    step("a", COPY_OFF="true", LOCAL_BYTES="-2"),
    step("a", LOCAL_MS="4999"),
    step("a", MS="6000"),
    step("a", COPY_OFF=None, MS="6000"),
    step("a", "false", DELETE_OFF="false"),
    step("a", "false", DELETE_OFF="true"),
    step("a", "false"),
    step("a", POLICY="compact"),
    step("a", "true"),
    step("a", "true", POLICY=None),
    step("a", None),
    step("a", "true"),
    Attempt(REPLACE, "a", {DELETE_OFF: "true"}),
    Attempt(REPLACE, "a", {}),
    step("a", "true"),
    on_broker(log_local_retention_ms="604800001"),
    on_broker(log_local_retention_ms="-1"),
    on_broker(log_local_retention_ms="-3"),
    on_broker(log_local_retention_bytes="-3"),
    on_broker(log_local_retention_ms="1000"),
    on_broker(log_local_retention_ms=None),
    on_broker(log_local_retention_bytes="1000"),
    on_broker(log_local_retention_bytes=None),
    on_broker(remote_log_storage_system_enable="false"),
    on_broker(remote_log_manager_task_interval_ms="1000"),
    on_broker(remote_log_reader_max_pending_tasks="7"),
    on_broker(remote_fetch_max_wait_ms="0"),
    on_broker(remote_fetch_max_wait_ms="100"),
    on_broker(remote_fetch_max_wait_ms=None),
    on_broker(remote_list_offsets_request_timeout_ms="100"),
    on_broker(remote_list_offsets_request_timeout_ms=None),
    on_broker(remote_log_manager_copier_thread_pool_size="12"),
    on_broker(remote_log_manager_copier_thread_pool_size=None),
    on_broker(remote_log_manager_copy_max_bytes_per_second="1000000"),
    on_broker(remote_log_manager_copy_max_bytes_per_second="0"),
    on_broker(remote_log_manager_copy_max_bytes_per_second=None),
    on_broker(remote_log_manager_expiration_thread_pool_size="12"),
    on_broker(remote_log_manager_expiration_thread_pool_size=None),
    on_broker(remote_log_manager_fetch_max_bytes_per_second="1000000"),
    on_broker(remote_log_manager_fetch_max_bytes_per_second=None),
    on_broker(remote_log_reader_threads="12"),
    on_broker(remote_log_reader_threads="0"),
    on_broker(remote_log_reader_threads=None),
)
"""Of a broker with a tier."""

SCENES: Mapping[str, Sequence[Attempt]] = {"without tier": WITHOUT_TIER, "with tier": WITH_TIER}


def request_of(attempt: Attempt) -> tuple[Any, int]:
    """The request, and its version."""
    call, name, settings, _ = attempt
    if call == CREATE:
        configs = [
            create_topics.CreatableTopicConfig(name=key, value=value)
            for key, value in settings.items()
        ]
        topic = create_topics.CreatableTopic(
            name=name, num_partitions=1, replication_factor=1, configs=configs
        )
        return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7
    if call == REPLACE:
        values = [
            alter_configs.AlterableConfig(name=key, value=value) for key, value in settings.items()
        ]
        resource = alter_configs.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=values
        )
        return alter_configs.AlterConfigsRequest(resources=[resource]), 2
    steps = incremental_alter_configs.AlterConfigsResource(
        resource_type=BROKER if call == ON_BROKER else TOPIC,
        resource_name=name,
        configs=[_step(key, value) for key, value in settings.items()],
    )
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[steps]), 1


def _step(key: str, value: str | None) -> incremental_alter_configs.AlterableConfig:
    operation = DELETE if value is None else APPEND if value.startswith("+") else SET
    return incremental_alter_configs.AlterableConfig(
        name=key, config_operation=operation, value=value and value.removeprefix("+")
    )


def told(attempt: Attempt, response: Any) -> list[Any]:
    """Error code and text."""
    (result,) = response.topics if attempt.call == CREATE else response.responses
    return [result.error_code, result.error_message or ""]


def description_requests() -> dict[str, tuple[Any, int]]:
    """Questions that show the keys as they are after the last attempt, by a name."""
    asked = {"topic": (TOPIC, "a", TOPIC_KEYS), "broker": (BROKER, str(NODE_ID), BROKER_KEYS)}
    return {
        what: (
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=kind, resource_name=name, configuration_keys=list(keys)
                    )
                ],
                include_synonyms=True,
            ),
            4,
        )
        for what, (kind, name, keys) in asked.items()
    }


def described(response: Any) -> list[list[Any]]:
    """Name, value, whether it is read-only, source, type, and synonyms of each key."""
    return sorted(
        [
            each.name,
            each.value,
            each.read_only,
            each.config_source,
            each.config_type,
            [[one.name, one.value, one.source] for one in each.synonyms],
        ]
        for each in response.results[0].configs
    )


def left_on_broker(attempts: Sequence[Attempt], answers: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The broker's keys that are still changed after the attempts, with their values."""
    left: dict[str, str | None] = {}
    for attempt, (error, _) in zip(attempts, answers, strict=True):
        if attempt.call == ON_BROKER and error == 0:
            left |= attempt.settings
    return {key: value for key, value in left.items() if value is not None}


def changed_on_broker(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """The broker's keys that these rows show as changed, with their values."""
    return {
        name: value
        for row in rows
        for name, value, source in row[-1]
        if source == DYNAMIC_BROKER_CONFIG
    }
