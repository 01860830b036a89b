"""Requests of an administrator about replicas and quotas, and the broker's answers.

The same questions go to a real Kafka and to ours; `told` is filled with codes, texts aside.
"""

from typing import Any

from protocol.apis import alter_client_quotas as alter
from protocol.apis import alter_partition_reassignments as reassign
from protocol.apis import alter_user_scram_credentials as users
from protocol.apis import describe_client_quotas as describe
from protocol.apis import describe_user_scram_credentials as described
from protocol.apis import elect_leaders, list_partition_reassignments
from tests.support.clients.wire import WireClient
from tests.support.patience import until

Told = dict[str, Any]
Parts = list[tuple[str, str | None]]
USER, CLIENT = ("user", "u"), ("client-id", "c")
EXACT, DEFAULT, ANY = range(3)
USER_CHANGES: list[list[tuple[Any, ...]]] = [
    [],
    [("u", 1, 4096), ("v", 2, 16384)],
    [("u", 2, 8192)],
    [("u", 1, 4095), ("w", 1, 4096)],
    [("u", 1, 16385)],
    [("", 1, 4096)],
    [("", 1)],
    [("u", 0, 4096)],
    [("u", 3)],
    [("u", 1, 4096), ("u", 2, 4096)],
    [("u", 1), ("u", 1, 4096)],
    [("u", 1), ("u", 1), ("v", 2)],
    [("nobody", 1), ("w", 2)],
    [("w", 1)],
]
ALTERATIONS: list[tuple[Parts, dict[str, float | None]]] = [
    ([], {"producer_byte_rate": 1.0}),
    ([("user", "")], {"producer_byte_rate": 1.0}),
    ([("group", "g")], {"producer_byte_rate": 1.0}),
    ([USER, ("ip", "127.0.0.1")], {"producer_byte_rate": 1.0}),
    ([("ip", "127.0.0.1")], {"producer_byte_rate": 1.0}),
    ([USER], {"nonsense": 1.0}),
    ([USER], {"nonsense": None}),
    ([USER], {"producer_byte_rate": 1.5}),
    ([USER], {"producer_byte_rate": 0.0}),
    ([USER], {"producer_byte_rate": -1.0}),
    ([USER], {"producer_byte_rate": float("inf")}),
    ([USER], {"request_percentage": 0.0}),
    ([USER], {"connection_creation_rate": 5.0}),
    ([USER], {"producer_byte_rate": 11.0, "nonsense": 1.0}),
    ([USER], {}),
    ([USER], {"producer_byte_rate": 2.0**40, "request_percentage": 12.5}),
    ([USER, CLIENT], {"consumer_byte_rate": 5.0}),
    ([("user", None), ("client-id", None)], {"consumer_byte_rate": 7000.0}),
    ([USER], {"request_percentage": None}),
]
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool]] = [
    ([], False),
    ([], True),
    ([("user", ANY, None)], False),
    ([("user", ANY, None)], True),
    ([("user", EXACT, "u")], True),
    ([("user", DEFAULT, None)], False),
    ([("client-id", EXACT, "c")], False),
    ([("ip", ANY, None)], False),
    ([("", ANY, None)], False),
    ([("user", EXACT, None)], False),
    ([("user", DEFAULT, "x")], False),
    ([("user", ANY, "x")], False),
    ([("user", 5, None)], False),
    ([("user", ANY, None), ("user", ANY, None)], False),
    ([("group", ANY, None)], False),
    ([("ip", ANY, None), ("user", ANY, None)], False),
]
REPLICAS: list[list[int] | None] = [[1], [2], [1, 1], [1, 2], [], [-1], None]


def administer(client: WireClient, told: Told, topic: str) -> None:
    """Every question; `topic` has one partition, on broker 1."""
    alter_quotas(client, told)
    move_replicas(client, told, topic)
    elect(client, told, topic)
    describe_quotas(client, told)
    alter_users(client, told)
    until(lambda: "w" not in users_of(client))
    describe_users(client, told)


def alter_quotas(client: WireClient, told: Told) -> None:
    for parts, changes in ALTERATIONS:
        entity = [alter.EntityData(entity_type=kind, entity_name=name) for kind, name in parts]
        ops = [
            alter.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in changes.items()
        ]
        request = alter.AlterClientQuotasRequest(entries=[alter.EntryData(entity=entity, ops=ops)])
        (answer,) = client.call(request, 1).entries
        told[f"quota: {parts} {changes}"] = answer.error_code


def describe_quotas(client: WireClient, told: Told) -> None:
    for components, strict in FILTERS:
        request = describe.DescribeClientQuotasRequest(
            components=[
                describe.ComponentData(entity_type=kind, match_type=how, match=name)
                for kind, how, name in components
            ],
            strict=strict,
        )
        answer = client.call(request, 1)
        entries = answer.entries
        told[f"quotas of {components} {strict}"] = (
            answer.error_code,
            entries
            and sorted(
                str([(part.entity_type, part.entity_name) for part in each.entity])
                + str(sorted((value.key, value.value) for value in each.values))
                for each in entries
            ),
        )


def move_replicas(client: WireClient, told: Told, topic: str) -> None:
    places = [(topic, 0, replicas) for replicas in REPLICAS] + [(topic, 9, [1]), ("nope", 0, [1])]
    for name, index, replicas in places:
        partition = reassign.ReassignablePartition(partition_index=index, replicas=replicas)
        asked = reassign.ReassignableTopic(name=name, partitions=[partition])
        for version in (0, 1):
            request = reassign.AlterPartitionReassignmentsRequest(
                topics=[asked], timeout_ms=10_000, allow_replication_factor_change=version == 0
            )
            response = client.call(request, version)
            code = response.responses[0].partitions[0].error_code
            told[f"replicas v{version}: {name}-{index} {replicas}"] = response.error_code, code
    every = list_partition_reassignments.ListPartitionReassignmentsRequest(timeout_ms=10_000)
    answer = client.call(every, 0)
    told["replicas that move"] = answer.error_code, answer.topics


def elect(client: WireClient, told: Told, topic: str) -> None:
    for kind in (0, 1, 2):
        for name, index in ((topic, 0), (topic, 9), ("nope", 0)):
            asked = elect_leaders.TopicPartitions(topic=name, partitions=[index])
            request = elect_leaders.ElectLeadersRequest(
                election_type=kind, topic_partitions=[asked], timeout_ms=10_000
            )
            answer = client.call(request, 2)
            told[f"elect {kind}: {name}-{index}"] = (
                answer.error_code,
                [
                    (each.partition_id, each.error_code)
                    for result in answer.replica_election_results
                    for each in result.partition_result
                ],
            )


def alter_users(client: WireClient, told: Told) -> None:
    """Each of a list of requests: deletions are pairs, upsertions have iterations too."""
    for changes in USER_CHANGES:
        request = users.AlterUserScramCredentialsRequest(
            deletions=[
                users.Deletion(name=each[0], mechanism=each[1]) for each in changes if len(each) < 3
            ],
            upsertions=[
                users.Upsertion(
                    name=each[0],
                    mechanism=each[1],
                    iterations=each[2],
                    salt=b"salt",
                    salted_password=bytes(32 * each[1]),
                )
                for each in changes
                if len(each) == 3
            ],
        )
        answer = client.call(request, 0)
        told[f"users: {changes}"] = sorted(
            (each.user, each.error_code, each.error_message) for each in answer.results
        )


def users_of(client: WireClient) -> set[str]:
    """Names of all users. A Kafka shows the last change late: its broker follows its controller."""
    answer = client.call(described.DescribeUserScramCredentialsRequest(users=None), 0)
    return {each.user for each in answer.results}


def describe_users(client: WireClient, told: Told) -> None:
    for names in (None, [], ["u"], ["u", "nobody"], ["u", "u"], [""]):
        request = described.DescribeUserScramCredentialsRequest(
            users=None if names is None else [described.UserName(name=each) for each in names]
        )
        answer = client.call(request, 0)
        told[f"users {names}"] = (
            answer.error_code,
            answer.error_message,
            sorted(
                (
                    each.user,
                    each.error_code,
                    each.error_message,
                    sorted((info.mechanism, info.iterations) for info in each.credential_infos),
                )
                for each in answer.results
            ),
        )
