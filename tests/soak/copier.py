"""A copier with exactly-once beside the soak's producers, started again whenever it ends."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import IO

from confluent_kafka import Consumer, KafkaException, TopicPartition

COPY = "copied"
LOOKS_SECONDS = 0.2
DEBUG = "eos,cgrp,topic"


class Copier:
    """Copies a topic into another in transactions with the offsets of its group."""

    def __init__(
        self, bootstrap: str, source: str, partitions: int, logs: Path | None = None
    ) -> None:
        """Copies nothing yet. `logs`: a directory for what its processes do."""
        self._bootstrap = bootstrap
        self._source = source
        self._partitions = partitions
        self._logs = logs
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)
        self.starts = 0
        """Processes that were started: an error that is final ends one."""
        self.places: dict[str, list[str]] = defaultdict(list)
        """Partition and offset of each value that `copied` found."""

    def begin(self) -> None:
        """Copies from now on."""
        self._thread.start()

    def end(self, count: int, within_seconds: float) -> None:
        """Copies on until the group is behind so many records, or does not get on for so long."""
        furthest, deadline = -1, time.monotonic() + within_seconds
        while (position := self._position()) < count and time.monotonic() < deadline:
            if position > furthest:
                furthest, deadline = position, time.monotonic() + within_seconds
            time.sleep(LOOKS_SECONDS)
        self._ends.set()
        self._thread.join()

    def copied(self, within_seconds: float) -> Counter[str]:
        """What a reader of committed records finds, up to the ends of all partitions; less when
        none comes for so long.
        """
        reader = Consumer({
            "bootstrap.servers": self._bootstrap, "group.id": "none", "log_level": 0,
            "isolation.level": "read_committed", "enable.partition.eof": True,
        })  # fmt: skip
        reader.assign([TopicPartition(COPY, each, 0) for each in range(self._partitions)])
        found, ended = Counter[str](), set[int]()
        last = time.monotonic()
        while len(ended) < self._partitions and time.monotonic() < last + within_seconds:
            for each in reader.consume(2000, 1.0):
                if each.error() is None:
                    last = time.monotonic()
                    value = (each.value() or b"").decode()[::-1]
                    found[value] += 1
                    self.places[value].append(f"{each.partition()}@{each.offset()}")
                elif (partition := each.partition()) is not None:
                    ended.add(partition)
        reader.close()
        return found

    def _supervise(self) -> None:
        arguments = [self._bootstrap, self._source, COPY, "copiers", "copier"]
        if self._logs is not None:
            arguments.append(DEBUG)
        while not self._ends.is_set():
            self.starts += 1
            with self._log() as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", "tests.conformance.transformer", *arguments], stderr=log
                )
            while process.poll() is None and not self._ends.wait(LOOKS_SECONDS):
                pass
            process.kill()
            process.wait()

    def _log(self) -> IO[bytes]:
        if self._logs is None:
            return Path(os.devnull).open("wb")
        return (self._logs / f"copier-{self.starts}.log").open("wb")

    def _position(self) -> int:
        asking = Consumer({
            "bootstrap.servers": self._bootstrap, "group.id": "copiers", "log_level": 0,
        })  # fmt: skip
        places = [TopicPartition(self._source, each) for each in range(self._partitions)]
        try:
            return sum(max(each.offset, 0) for each in asking.committed(places, 10))
        except KafkaException:  # the coordinator is moving, or offsets wait for a marker
            return 0
        finally:
            asking.close()


def copies(copied: Counter[str], sent: set[str]) -> list[str]:
    """Broken promises of a copier; none is the aim."""
    faults = [f"{value} was copied {count} times" for value, count in copied.items() if count > 1]
    faults += [f"{value} was not copied" for value in sorted(sent - copied.keys())]
    faults += [f"nobody sent {value}, which was copied" for value in sorted(copied.keys() - sent)]
    return faults[:9]
