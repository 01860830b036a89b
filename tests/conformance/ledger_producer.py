"""A producer process that notes every acknowledgement outside the broker.

usage: python -m tests.conformance.ledger_producer BOOTSTRAP TOPIC NUMBER LEDGER RATE BYTES

Sends `NUMBER:SEQUENCE` (padded to BYTES) with acks=all to partition NUMBER, about RATE records a
second, through every restart of the broker, until SIGTERM. The ledger gets one line `OFFSET
SEQUENCE` per acknowledged record. Even numbers are idempotent, odd ones are not.
"""

import itertools
import signal
import sys
import time
from pathlib import Path
from typing import TextIO

from confluent_kafka import KafkaError, Message, Producer

BURST_SECONDS = 0.01


def value_of(number: int, sequence: int, size_bytes: int) -> bytes:
    """What record `sequence` of producer `number` carries."""
    return f"{number}:{sequence}:".encode().ljust(size_bytes, b"~")


class Writer:
    def __init__(self, bootstrap: str, topic: str, number: int, ledger: TextIO) -> None:
        self._topic, self._number, self._ledger = topic, number, ledger
        self.stopping = False
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": number % 2 == 0,
                "message.timeout.ms": 90_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "linger.ms": 2,
                "log_level": 0,  # that the broker is away now and then is the point
            }
        )

    def run(self, rate: int, size_bytes: int) -> int:
        """Returns 0 when everything sent was acknowledged."""
        burst = max(1, int(rate * BURST_SECONDS))
        for first in itertools.count(step=burst):
            if self.stopping:
                break
            for sequence in range(first, first + burst):
                self._send(sequence, value_of(self._number, sequence, size_bytes))
            self._producer.poll(0)
            time.sleep(BURST_SECONDS)
        return int(self._producer.flush(90))

    def _send(self, sequence: int, value: bytes) -> None:
        key = str(sequence).encode()
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, partition=self._number, on_delivery=self._acknowledged
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _acknowledged(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            sys.exit(f"producer {self._number}: {error}")
        self._ledger.write(f"{message.offset()} {(message.key() or b'').decode()}\n")


def main() -> int:
    bootstrap, topic, number, ledger, rate, size_bytes = sys.argv[1:]
    with Path(ledger).open("w") as lines:
        writer = Writer(bootstrap, topic, int(number), lines)

        def stop(*_: object) -> None:
            writer.stopping = True

        signal.signal(signal.SIGTERM, stop)
        return writer.run(int(rate), int(size_bytes))


if __name__ == "__main__":
    sys.exit(main())
