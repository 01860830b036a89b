"""A consumer as a process of its own, to be killed: says what it was given, and what it read.

Arguments: HOST:PORT, topic, group, session time-out in ms, or `consumer` for the protocol in which
the broker says that. One line to an event on standard output. It commits each record after it has
said it.
"""

import sys

from confluent_kafka import Consumer, TopicPartition


def say(*words: object) -> None:
    print(*words, flush=True)


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    say("assigned", *sorted(each.partition for each in partitions))


def main() -> None:
    bootstrap, topic, group, session = sys.argv[1:]
    protocol = {"session.timeout.ms": session, "heartbeat.interval.ms": 300}
    if session == "consumer":
        protocol = {"group.protocol": "consumer"}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **protocol,
        }
    )
    consumer.subscribe([topic], on_assign=assigned)
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            say("read", message.partition(), message.offset())
            consumer.commit(message, asynchronous=False)


if __name__ == "__main__":
    main()
