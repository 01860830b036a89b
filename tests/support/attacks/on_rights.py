"""Attacks by a user who is logged in and may use one topic and one group."""

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from tests.support.attacks.on_log_ins import ENOUGH_FOR_TIMES, DifferenceError
from tests.support.attacks.target import GROUP, HIDDEN, OPEN, Attack, Stranger, Target, user
from tests.support.worlds.inflating import big_value, many_headers

Ask = Callable[[Stranger, int], object]
RIGHTS = {29, 30, 31, 53}
ANY, TOPIC, GROUP_TYPE, ALL, ALLOW, LITERAL = 1, 2, 3, 2, 3, 3


def again(target: Target, ask: Ask) -> int:
    """One request after the other; a new connection when the broker ended the last one."""
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError), user(target) as client:
            while target.goes_on():
                struck += 1
                ask(client, struck)
    return struck


def _denied(codes: set[int]) -> None:
    if not codes <= RIGHTS:
        raise DifferenceError(f"a denied request was answered {codes}")


def _apart(target: Target, what: str, ask: Callable[[Stranger, str], Any]) -> int:
    """Alternates a hidden name and one that there is not: answers and times must be alike."""
    hidden, missing = HIDDEN, "missin"
    heard: dict[str, set[str]] = {hidden: set(), missing: set()}
    seconds: dict[str, list[float]] = {hidden: [], missing: []}
    names = itertools.cycle(heard)

    def strike(client: Stranger, _: int) -> None:
        name = next(names)
        began = time.perf_counter()
        answer = ask(client, name)
        seconds[name].append(time.perf_counter() - began)
        heard[name].add(repr(answer).replace(name, "NAME"))

    struck = again(target, strike)
    if struck > 1 and heard[hidden] != heard[missing]:
        raise DifferenceError(f"{what}: {heard}")
    if struck > ENOUGH_FOR_TIMES:
        first, second = (statistics.median(each) for each in seconds.values())
        if not 0.8 < first / second < 1.25:
            raise DifferenceError(f"{what}: hidden names take {first:.6f} s, others {second:.6f} s")
    return struck


def topics_by_metadata(target: Target) -> int:
    """Metadata of a hidden topic and of none."""
    return _apart(
        target, "Metadata", lambda client, name: client.ask("Metadata", 12, topics=[{"name": name}])
    )


def topics_by_produce(target: Target) -> int:
    """Records for a hidden topic and for none."""
    records = bytes(build_batch([(time.time_ns() // 1_000_000, b"k", b"v")]))

    def ask(client: Stranger, name: str) -> Any:
        part = [{"index": 0, "records": records}]
        topics = [{"name": name, "partition_data": part}]
        return client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)

    return _apart(target, "Produce", ask)


def topics_by_times(target: Target) -> int:
    """Offsets of a hidden topic and of none."""

    def ask(client: Stranger, name: str) -> Any:
        part = [{"partition_index": 0, "timestamp": -1}]
        topics = [{"name": name, "partitions": part}]
        return client.ask("ListOffsets", 6, replica_id=-1, topics=topics)

    return _apart(target, "ListOffsets", ask)


def topics_by_creation(target: Target) -> int:
    """A hidden topic is created again, and one that there is not."""

    def ask(client: Stranger, name: str) -> Any:
        topics = [{"name": name, "num_partitions": 1, "replication_factor": 1}]
        return client.ask("CreateTopics", 7, topics=topics, timeout_ms=1000)

    return _apart(target, "CreateTopics", ask)


def groups_by_description(target: Target) -> int:
    """A hidden group and none."""

    def ask(client: Stranger, name: str) -> Any:
        return client.ask("DescribeGroups", 5, groups=[name])

    return _apart(target, "DescribeGroups", ask)


def _acl(number: int) -> dict[str, Any]:
    return {
        "resource_type": TOPIC, "resource_name": f"t{number}", "resource_pattern_type": LITERAL,
        "principal": "User:mallory", "host": "*", "operation": ALL, "permission_type": ALLOW,
    }  # fmt: skip


def rights_for_oneself(target: Target) -> int:
    """A thousand entries in each request, by a user who may add none."""
    entries = [_acl(number) for number in range(1000)]

    def ask(client: Stranger, _: int) -> None:
        answer = client.ask("CreateAcls", 3, creations=entries)
        _denied({each.error_code for each in answer.results})

    return again(target, ask)


def removal_of_all_rights(target: Target) -> int:
    """A filter that fits every entry."""
    every = {
        "resource_type_filter": ANY, "pattern_type_filter": ANY, "operation": ANY,
        "permission_type": ANY,
    }  # fmt: skip

    def ask(client: Stranger, _: int) -> None:
        answer = client.ask("DeleteAcls", 3, filters=[every] * 1000)
        _denied({each.error_code for each in answer.filter_results})

    return again(target, ask)


def passwords_of_others(target: Target) -> int:
    """A new password for the administrator, with two thousand million iterations."""
    new = {
        "name": "admin", "mechanism": 1, "iterations": 2**31 - 1, "salt": b"s",
        "salted_password": bytes(32),
    }  # fmt: skip

    def ask(client: Stranger, _: int) -> None:
        answer = client.ask("AlterUserScramCredentials", 0, deletions=[], upsertions=[new])
        _denied({each.error_code for each in answer.results})

    return again(target, ask)


def settings_of_the_broker(target: Target) -> int:
    """Super users and connections are altered."""
    configs = [
        {"name": "super.users", "config_operation": 0, "value": "User:mallory"},
        {"name": "max.connections", "config_operation": 0, "value": "0"},
    ]

    def ask(client: Stranger, _: int) -> None:
        resources = [{"resource_type": 4, "resource_name": "", "configs": configs}]
        answer = client.ask("IncrementalAlterConfigs", 1, resources=resources)
        _denied({each.error_code for each in answer.responses})

    return again(target, ask)


def names_never_heard_of(target: Target) -> int:
    """Five thousand new names in each request: what is remembered of rights must not grow."""

    def ask(client: Stranger, number: int) -> None:
        topics = [{"name": f"n{number}-{each}"} for each in range(5000)]
        client.ask("Metadata", 12, topics=topics)

    return again(target, ask)


def denied_megabytes(target: Target) -> int:
    """A MiB of records in each request, for a topic that is not the user's."""
    records = bytes(build_batch([(time.time_ns() // 1_000_000, b"k", bytes(900_000))]))

    def ask(client: Stranger, _: int) -> None:
        part = [{"index": 0, "records": records}]
        topics = [{"name": HIDDEN, "partition_data": part}]
        answer = client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)
        _denied({answer.responses[0].partition_responses[0].error_code})

    return again(target, ask)


def one_group_many_times(target: Target) -> int:
    """The offsets of one group, named two thousand times."""
    groups = [{"group_id": GROUP, "topics": None}] * 2000
    return again(target, lambda client, _: client.ask("OffsetFetch", 8, groups=groups))


def one_topic_many_times(target: Target) -> int:
    """The settings of one topic, named five thousand times."""
    resources = [{"resource_type": TOPIC, "resource_name": OPEN}] * 5000
    return again(target, lambda client, _: client.ask("DescribeConfigs", 4, resources=resources))


def slow_expressions(target: Target) -> int:
    """Expressions that take some engines for ever."""
    expression = "(a+)+$" * 20

    def ask(client: Stranger, number: int) -> None:
        client.ask(
            "ConsumerGroupHeartbeat", 1, group_id=GROUP, member_id=f"m{number % 50}",
            member_epoch=0, rebalance_timeout_ms=1000, subscribed_topic_regex=expression,
            topic_partitions=[],
        )  # fmt: skip

    return again(target, ask)


def endless_members(target: Target) -> int:
    """New members of a group in every request."""

    def ask(client: Stranger, _: int) -> None:
        protocols = [{"name": "range", "metadata": bytes(10_000)}]
        client.say(
            "JoinGroup", 3, group_id=GROUP, session_timeout_ms=10_000, rebalance_timeout_ms=20_000,
            protocol_type="consumer", protocols=protocols,
        )  # fmt: skip
        client.close()

    return again(target, ask)


def endless_producers(target: Target) -> int:
    """A producer id for each batch."""

    def ask(client: Stranger, number: int) -> None:
        batch = build_batch(
            [(time.time_ns() // 1_000_000, b"k", b"v")],
            producer_id=number % 1000, producer_epoch=0, base_sequence=0,
        )  # fmt: skip
        part = [{"index": 0, "records": bytes(batch)}]
        topics = [{"name": OPEN, "partition_data": part}]
        client.ask("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
        client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)

    return again(target, ask)


def endless_fetch_sessions(target: Target) -> int:
    """A fetch session in each request, and none is used."""

    def ask(client: Stranger, _: int) -> None:
        part = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1}]
        client.ask(
            "Fetch", 12, max_wait_ms=0, min_bytes=0, session_id=0, session_epoch=0,
            topics=[{"topic": OPEN, "partitions": part}],
        )  # fmt: skip

    return again(target, ask)


def _inflating(target: Target, batch: bytes) -> int:
    def ask(client: Stranger, _: int) -> None:
        part = [{"index": 0, "records": batch}]
        topics = [{"name": OPEN, "partition_data": part}]
        client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)

    return again(target, ask)


def inflating_values(target: Target) -> int:
    """A few KB that unpack to 63 MiB."""
    return _inflating(target, big_value(Codec.ZSTD))


def inflating_headers(target: Target) -> int:
    """A few KB that unpack to two million headers."""
    return _inflating(target, many_headers(Codec.ZSTD, 2_000_000))


def long_arrays(target: Target) -> int:
    """A Metadata request that announces two thousand million names."""
    bare = b"\x00\x03\x00\x01\x00\x00\x00\x01\x00\x01c" + (0x7FFF_FFFF).to_bytes(4, "big")

    def ask(client: Stranger, _: int) -> None:
        client.send_raw(len(bare).to_bytes(4, "big") + bare)
        client.receive_frame()

    return again(target, ask)


def answers_that_nobody_reads(target: Target) -> int:
    """Two hundred requests for long answers on each connection, and none is read."""
    resources = [{"resource_type": TOPIC, "resource_name": f"{OPEN}{n}"} for n in range(500)]
    struck = 0
    with contextlib.ExitStack() as stack:
        held: list[Stranger] = []
        while target.goes_on():
            with contextlib.suppress(OSError):
                client = stack.enter_context(user(target))
                client.socket.settimeout(0.05)
                held = [*held[-40:], client]
                for _ in range(200):
                    client.say("DescribeConfigs", 4, resources=resources)
                    struck += 1
    return struck


ATTACKS: tuple[Attack, ...] = (
    topics_by_metadata, topics_by_produce, topics_by_times, topics_by_creation,
    groups_by_description, rights_for_oneself, removal_of_all_rights, passwords_of_others,
    settings_of_the_broker, names_never_heard_of, denied_megabytes, one_group_many_times,
    one_topic_many_times, slow_expressions, endless_members, endless_producers,
    endless_fetch_sessions, inflating_values, inflating_headers, long_arrays,
    answers_that_nobody_reads,
)  # fmt: skip
