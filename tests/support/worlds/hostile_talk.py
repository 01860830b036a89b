"""Requests of an attacker who wants a broker to fail: each verb one attack, over one connection.

None waits longer than its answer takes; what the answer is does not matter here. `ODD_STATE` is
what a disk may hold that no broker would have written: rows for the topics of the coordinators.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from broker.groups.records.classic import GroupMetadataValue, MemberMetadata, group_key, group_value
from broker.transactions.transaction_records import transaction_key
from protocol.records.batch import HEADER_BYTES, LENGTH_ENDS, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from tests.support.clients.plain_talk import Talk
from tests.support.worlds.handler_world import BATCH_TIME, batch

Attack = Callable[[Talk, random.Random], Awaitable[None]]
BROKER, TOPIC, SET = 4, 2, 0
BAD_LIMITS = {
    "max.connections": "0",
    "max.connections.per.ip": "0",
    "message.max.bytes": "0",
    "log.retention.ms": "1",
    "log.segment.bytes": "14",
    "num.io.threads": "0",
    "max.connection.creation.rate": "0",
    "group.consumer.session.timeout.ms": "1",
}
TWICE = MemberMetadata(
    member_id="m", client_id="c", client_host="/h", session_timeout=6000,
    subscription=b"", assignment=b"",
)  # fmt: skip
ODD_STATE: tuple[tuple[str, bytes, bytes | None], ...] = (
    (
        "__consumer_offsets",
        group_key("odd"),
        group_value(
            GroupMetadataValue(
                protocol_type="consumer", generation=3, protocol="range", leader="m",
                members=[TWICE, TWICE],
            )
        ),
    ),
    ("__consumer_offsets", group_key("odd"), b"\x00\x03\xff"),
    ("__consumer_offsets", b"\x7f\xff", b"?"),
    ("__transaction_state", transaction_key("odd"), b"\x00\x00\xff"),
    ("__transaction_state", b"\x00\x00\x7f", b""),
)  # fmt: skip


async def produce(talk: Talk, records: Any, topic: str = "t", version: int = 9) -> None:
    part = {"index": 0, "records": bytes(records)}
    data = [{"name": topic, "partition_data": [part]}]
    await talk.ask("Produce", version, acks=1, timeout_ms=1000, topic_data=data)


async def join(talk: Talk, group: str, kind: str, names: list[str], version: int = 3) -> None:
    """Version 3 joins at once, without an id to be given first."""
    protocols = [{"name": name, "metadata": b"m"} for name in names]
    await talk.say(
        "JoinGroup", version, group_id=group, session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000, protocol_type=kind, protocols=protocols,
    )  # fmt: skip


async def protocol_named_twice(talk: Talk, dice: random.Random) -> None:
    await join(talk, f"twice-{dice.randrange(3)}", "consumer", ["range", "range"])


async def long_protocol_type(talk: Talk, dice: random.Random) -> None:
    await join(talk, f"long-{dice.randrange(3)}", "p" * dice.choice((32_767, 20_000)), ["range"])
    await join(talk, f"longer-{dice.randrange(3)}", "p" * 40_000, ["range"], version=9)


async def members_that_say_nothing_more(talk: Talk, dice: random.Random) -> None:
    for _ in range(20):
        await join(talk, f"silent-{dice.randrange(4)}", "consumer", ["range", "b" * 30_000])


async def last_producer_id(talk: Talk, dice: random.Random) -> None:
    who = {"producer_id": 2**63 - 1 - dice.randrange(2), "producer_epoch": 0, "base_sequence": 0}
    await produce(talk, batch(b"v", **who))


async def wild_offset_deltas(talk: Talk, dice: random.Random) -> None:
    deltas = dice.choice(([0, 5_000_000], [0, 0], [1, 0], [0, 2**31 - 1]))
    rows = [(BATCH_TIME, None, b"v")] * 2
    records = build_batch(rows, offset_deltas=deltas)
    await produce(talk, records)
    records[23:27] = (1).to_bytes(4, "big")  # the header says two, in a row
    seal(records, 0, len(records))
    await produce(talk, records)


async def wild_times(talk: Talk, dice: random.Random) -> None:
    at = dice.choice((2**63 - 1, -(2**63) + 1, -1, 0, BATCH_TIME + 10**15))
    await produce(talk, batch(b"v", at=at, step=0))


async def records_that_inflate(talk: Talk, dice: random.Random) -> None:
    codec = dice.choice((Codec.GZIP, Codec.ZSTD, Codec.LZ4))
    for _ in range(3):
        await produce(talk, build_batch([(BATCH_TIME, b"k", bytes(8 << 20))], codec=codec))


async def records_that_are_none(talk: Talk, dice: random.Random) -> None:
    """Control batches, wrong counts and lengths, with a right checksum."""
    await produce(talk, build_batch([(BATCH_TIME, b"\0\0\0\1", b"\0" * 6)], control=True))
    records = batch(b"a", b"b")
    at = dice.randrange(8, HEADER_BYTES)
    records[at] = dice.randrange(256)
    if dice.random() < 0.7:
        records[8:12] = (len(records) - LENGTH_ENDS).to_bytes(4, "big")
        seal(records, 0, len(records))
    await produce(talk, records)


async def huge_topic_lists(talk: Talk, dice: random.Random) -> None:
    """KIP-848: members who say that they read very many topics."""
    names = [f"{number:05}" + "n" * 200 for number in range(dice.choice((500, 20_000)))]
    for member in range(2):
        await talk.ask(
            "ConsumerGroupHeartbeat", 1, group_id=f"huge-{dice.randrange(2)}",
            member_id=f"m{member}-{dice.randrange(9)}", member_epoch=0,
            rebalance_timeout_ms=10_000, subscribed_topic_names=names, topic_partitions=[],
        )  # fmt: skip


async def repeated_names(talk: Talk, dice: random.Random) -> None:
    many = dice.choice((400, 3000))
    asked = {"group_id": "fat", "topics": None}
    await talk.ask("OffsetFetch", 9, groups=[asked] * many)
    await talk.ask("DescribeGroups", 5, groups=["fat"] * many)
    await talk.ask("ConsumerGroupDescribe", 1, group_ids=["huge-0"] * many)
    await talk.ask("DescribeTransactions", 0, transactional_ids=["open-0"] * many)
    one = {"resource_type": BROKER, "resource_name": "1"}
    await talk.ask("DescribeConfigs", 4, resources=[one] * many, include_documentation=True)
    await talk.ask("Metadata", 12, topics=[{"name": "t"}] * many)
    await talk.ask("DescribeTopicPartitions", 0, topics=[{"name": "t"}] * many)
    parts = {"name": "t", "partition_indexes": [0] * many}
    await talk.ask("DescribeProducers", 0, topics=[parts])


async def fat_offsets(talk: Talk, dice: random.Random) -> None:
    part = {"committed_offset": 1, "committed_metadata": "m" * 4096}
    parts = [part | {"partition_index": index} for index in range(200)]
    for number in range(3):
        await talk.ask(
            "OffsetCommit", 8, group_id="fat", generation_id_or_member_epoch=-1,
            topics=[{"name": dice.choice(("t", f"u{number}")), "partitions": parts}],
        )  # fmt: skip


async def nobody_may_connect(talk: Talk, dice: random.Random) -> None:
    name, value = dice.choice(list(BAD_LIMITS.items())[: dice.choice((1, 2, 9))])
    configs = [{"name": name, "config_operation": SET, "value": value}]
    for resource_name in ("", "1"):
        one = {"resource_type": BROKER, "resource_name": resource_name, "configs": configs}
        await talk.ask("IncrementalAlterConfigs", 1, resources=[one])


async def nobody_may_produce(talk: Talk, dice: random.Random) -> None:
    key = dice.choice(("producer_byte_rate", "consumer_byte_rate", "request_percentage"))
    op = {"key": key, "value": dice.choice((1e-9, 1.0)), "remove": False}
    kind = dice.choice(("user", "client-id"))
    entity = [{"entity_type": kind, "entity_name": None}]
    await talk.ask("AlterClientQuotas", 1, entries=[{"entity": entity, "ops": [op]}])


async def odd_topics(talk: Talk, dice: random.Random) -> None:
    names = ("..", ".", "a/../b", "x" * 250, "", "__consumer_offsets", "a_b", "a.b", "t")
    wanted = [
        {"name": name, "num_partitions": dice.choice((1, 3, 10**6, -1)), "replication_factor": 1}
        for name in names
    ]
    await talk.ask("CreateTopics", 7, topics=wanted, timeout_ms=1000)
    settings = {"retention.ms": "1", "segment.bytes": "1024", "cleanup.policy": "compact,delete"}
    for name, value in settings.items():
        one = {"resource_type": TOPIC, "resource_name": "t"}
        one["configs"] = [{"name": name, "config_operation": SET, "value": value}]
        await talk.ask("IncrementalAlterConfigs", 1, resources=[one])


async def open_transactions(talk: Talk, dice: random.Random) -> None:
    """Many ids; some with a long time-out, left open."""
    for number in range(5):
        made = await talk.ask(
            "InitProducerId", 4, transactional_id=f"open-{number}", transaction_timeout_ms=900_000
        )
        who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        old = {f"v3_and_below_{name}": value for name, value in who.items()}
        await talk.ask(
            "AddPartitionsToTxn", 3, v3_and_below_transactional_id=f"open-{number}", **old,
            v3_and_below_topics=[{"name": "t", "partitions": [0, 1, dice.randrange(9)]}],
        )  # fmt: skip
        marker = {**who, "transaction_result": dice.random() < 0.5, "coordinator_epoch": 9}
        marker["topics"] = [{"name": "t", "partition_indexes": [0]}]
        if dice.random() < 0.3:
            await talk.ask("WriteTxnMarkers", 1, markers=[marker])


async def many_producers(talk: Talk, dice: random.Random) -> None:
    data = bytearray()
    for _ in range(30):
        who = {"producer_id": dice.getrandbits(62), "producer_epoch": dice.randrange(99)}
        data[:] = batch(b"v", base_sequence=dice.choice((0, 5)), **who)
        await produce(talk, data)


async def last_offsets(talk: Talk, dice: random.Random) -> None:
    """Offsets, times and epochs near the end of their numbers, wherever they may be said."""
    at = dice.choice((2**63 - 1, 2**63 - 2, -(2**63), -2, 2**31))
    part: dict[str, Any] = {"partition_index": 0, "committed_offset": at}
    topics: list[dict[str, Any]] = [{"name": dice.choice(("t", "none")), "partitions": [part] * 2}]
    await talk.ask(
        "OffsetCommit", 8, group_id="last", generation_id_or_member_epoch=-1, topics=topics
    )
    asked = {"partition": 0, "fetch_offset": at, "partition_max_bytes": 1, "log_start_offset": at}
    await talk.ask("Fetch", 12, topics=[{"topic": "t", "partitions": [asked] * 2}])
    listed = {"name": "t", "partitions": [{"partition_index": 0, "timestamp": at}] * 3}
    await talk.ask("ListOffsets", 7, replica_id=-1, topics=[listed] * 2)
    epochs = {"partition": 0, "leader_epoch": dice.choice((2**31 - 1, -(2**31), -1, 1))}
    named = {"topic": "t", "partitions": [epochs] * 2}
    await talk.ask("OffsetForLeaderEpoch", 4, topics=[named] * 2)
    if at >= 0:
        cut = {"name": "t", "partitions": [{"partition_index": 0, "offset": at}] * 2}
        await talk.ask("DeleteRecords", 2, topics=[cut], timeout_ms=1000)


async def lists_of_nothing(talk: Talk, dice: random.Random) -> None:
    """Empty lists, and lists that say everything twice, where groups and topics are made."""
    group = f"nothing-{dice.randrange(3)}"
    await join(talk, group, "consumer", [])
    await join(talk, group, "", ["range"])
    topic = {"name": "v", "num_partitions": -1, "replication_factor": -1}
    for assignments in ([], [{"partition_index": 0, "broker_ids": [1, 1]}] * 2):
        made = topic | {"assignments": assignments}
        await talk.say("CreateTopics", 7, topics=[made, made], timeout_ms=1000)
    gone = [{"name": "v"}] * dice.choice((1, 300))
    await talk.say("DeleteTopics", 6, topics=gone, timeout_ms=1000)
    await talk.say("DeleteGroups", 2, groups_names=[group] * 300)


async def many_topic_names(talk: Talk, dice: random.Random) -> None:
    """KIP-848: many members, each with what a request may hold, each by itself acceptable."""
    for member in range(6):
        names = [f"{member:02}{number:05}" + "n" * 230 for number in range(1500)]
        await talk.say(
            "ConsumerGroupHeartbeat", 1, group_id=f"wide-{member % 2}",
            member_id=f"w{member}-{dice.randrange(9)}", member_epoch=0,
            rebalance_timeout_ms=10_000, subscribed_topic_names=names, topic_partitions=[],
        )  # fmt: skip


async def fetches_that_wait(talk: Talk, dice: random.Random) -> None:
    """For ever, nearly."""
    asked = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    await talk.say(
        "Fetch", 12, max_wait_ms=2**31 - 1, min_bytes=2**31 - 1, max_bytes=2**31 - 1,
        session_id=0, session_epoch=dice.choice((0, -1)),
        topics=[{"topic": "t", "partitions": [asked]}],
    )  # fmt: skip


async def half_frames(talk: Talk, dice: random.Random) -> None:
    size = dice.choice((2**31 - 1, 2**32 - 1, 0, 7, 90 << 20))
    talk.waits = True
    await talk.client.send_raw(size.to_bytes(4, "big") + dice.randbytes(dice.randrange(40)))


ATTACKS: tuple[Attack, ...] = (
    protocol_named_twice, long_protocol_type, members_that_say_nothing_more, last_producer_id,
    wild_offset_deltas, wild_times, records_that_inflate, records_that_are_none, huge_topic_lists,
    repeated_names, fat_offsets, nobody_may_connect, nobody_may_produce, odd_topics,
    open_transactions, many_producers, fetches_that_wait, half_frames,
    last_offsets, lists_of_nothing, many_topic_names,
)  # fmt: skip
