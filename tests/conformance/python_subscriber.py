"""A subscriber in Python as a process of its own, to be killed; or a producer.

Arguments: library, `produce` or `consume`, HOST:PORT, topic, and how many records or which group.
Says "written COUNT", or "read PARTITION OFFSET" for each record, which is then committed.
"""

import asyncio
import os
import ssl
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

SESSION_MS, HEARTBEAT_MS = 3000, 300
GROUP_SETTINGS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": SESSION_MS,
    "heartbeat_interval_ms": HEARTBEAT_MS,
}


PROTOCOL, MECHANISM, AUTHORITY, USER, PASSWORD, TOKEN = (
    os.environ.get(f"CLIENT_{each}", "")
    for each in ("PROTOCOL", "MECHANISM", "CA", "USER", "PASSWORD", "TOKEN")
)


def confluent_security() -> dict[str, Any]:
    """The broker asks who we are: what the environment says of that."""
    settings: dict[str, Any] = {}
    if PROTOCOL:
        settings["security.protocol"] = PROTOCOL
    if PROTOCOL.endswith("SSL"):
        settings["ssl.ca.location"] = AUTHORITY
    if MECHANISM == "OAUTHBEARER":
        settings |= {"sasl.mechanism": MECHANISM, "oauth_cb": lambda _: (TOKEN, time.time() + 300)}
    elif MECHANISM:
        settings |= {"sasl.mechanism": MECHANISM}
        settings |= {"sasl.username": USER, "sasl.password": PASSWORD}
    return settings


def python_security(provider: type) -> dict[str, Any]:
    """The same for kafka-python and aiokafka; `provider` is the class of their token providers."""
    settings: dict[str, Any] = {"security_protocol": PROTOCOL} if PROTOCOL else {}
    if PROTOCOL.endswith("SSL"):
        settings["ssl_context"] = ssl.create_default_context(cafile=AUTHORITY)
    if MECHANISM == "OAUTHBEARER":
        settings |= {"sasl_mechanism": MECHANISM, "sasl_oauth_token_provider": provider()}
    elif MECHANISM:
        settings |= {"sasl_mechanism": MECHANISM}
        settings |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
    return settings


def kafka_python_security() -> dict[str, Any]:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Fixed(AbstractTokenProvider):
        def token(self) -> str:
            return TOKEN

    return python_security(Fixed)


def aiokafka_security() -> dict[str, Any]:
    from aiokafka.abc import AbstractTokenProvider

    class Fixed(AbstractTokenProvider):
        async def token(self) -> str:
            return TOKEN

    return python_security(Fixed)


def say(*words: object) -> None:
    print(*words, flush=True)


def values(count: str) -> list[bytes]:
    return [b"%d" % number for number in range(int(count))]


def confluent_produce(bootstrap: str, topic: str, count: str) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, **confluent_security()}
    )
    for value in values(count):
        producer.produce(topic, value)
    assert producer.flush(30) == 0


def confluent_consume(bootstrap: str, topic: str, group: str) -> None:
    from confluent_kafka import Consumer, KafkaException

    settings = {name.replace("_", "."): value for name, value in GROUP_SETTINGS.items()}
    settings |= confluent_security()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **settings})
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            say("read", message.partition(), message.offset())
            try:
                consumer.commit(message, asynchronous=False)
            except KafkaException as error:
                print("not committed:", error, file=sys.stderr)


def python_produce(bootstrap: str, topic: str, count: str) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", **kafka_python_security())
    for written in [producer.send(topic, value) for value in values(count)]:
        written.get(30)
    producer.close()


def python_consume(bootstrap: str, topic: str, group: str) -> None:
    from kafka import KafkaConsumer
    from kafka.errors import KafkaError

    settings = {**GROUP_SETTINGS, **kafka_python_security()}
    consumer = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, **settings)
    while True:
        batches = consumer.poll(timeout_ms=200)
        for partition, records in batches.items():
            for record in records:
                say("read", partition.partition, record.offset)
        try:
            consumer.commit()
        except KafkaError as error:
            print("not committed:", error, file=sys.stderr)


async def aiokafka_produce(bootstrap: str, topic: str, count: str) -> None:
    from aiokafka import AIOKafkaProducer

    settings = {"enable_idempotence": True, **aiokafka_security()}
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **settings) as producer:
        for written in [await producer.send(topic, value) for value in values(count)]:
            await written


async def aiokafka_consume(bootstrap: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.errors import KafkaError

    settings = {**GROUP_SETTINGS, **aiokafka_security()}
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=group, **settings
    ) as consumer:
        while True:
            batches = await consumer.getmany(timeout_ms=200)
            for partition, records in batches.items():
                for record in records:
                    say("read", partition.partition, record.offset)
            try:
                await consumer.commit()
            except KafkaError as error:
                print("not committed:", error, file=sys.stderr)


VERBS: dict[tuple[str, str], Callable[[str, str, str], Any]] = {
    ("confluent-kafka", "produce"): confluent_produce,
    ("confluent-kafka", "consume"): confluent_consume,
    ("kafka-python", "produce"): python_produce,
    ("kafka-python", "consume"): python_consume,
    ("aiokafka", "produce"): aiokafka_produce,
    ("aiokafka", "consume"): aiokafka_consume,
}


def main() -> None:
    warnings.simplefilter("ignore")
    library, verb, *arguments = sys.argv[1:]
    result = VERBS[library, verb](*arguments)
    if asyncio.iscoroutine(result):
        asyncio.run(result)
    if verb == "produce":
        say("written", arguments[2])


if __name__ == "__main__":
    main()
