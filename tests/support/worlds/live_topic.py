"""A topic on a running broker whose clock the test holds, changed and used through real clients.

The producer and the consumer stay connected while settings change under them.
"""

from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.support.clients.admin import Admin
from tests.support.worlds.node_process import NodeProcess

PATIENCE = 30  # seconds, of the machine


class LiveBroker:
    """A broker started with `--test-clock`, its clock frozen, and the clients connected to it."""

    def __init__(self, process: NodeProcess, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.http = Admin(process.facts["http"])
        self.http.post("/api/clock/freeze")
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": process.bootstrap}
        self.admin = AdminClient(servers)
        self.producer = Producer({**servers, "linger.ms": 0, "batch.num.messages": 1})
        self.consumer = Consumer({**servers, "group.id": "unused", "enable.auto.commit": False})

    @property
    def now_ms(self) -> int:
        """The broker's wall clock."""
        found: int = self.http.get("/api/clock")["wall"]["ms"]
        return found

    def step(self, by: str) -> None:
        """Time passes; whatever was due has happened when this returns."""
        self.http.post("/api/clock/step", by=by)

    def topic(self, name: str, **settings: str) -> "LiveTopic":
        """A new topic; settings with underscores for dots."""
        configs = {key.replace("_", "."): value for key, value in settings.items()}
        made = self.admin.create_topics([NewTopic(name, 1, 1, config=configs)])
        made[name].result(PATIENCE)
        return LiveTopic(self, name)


class LiveTopic:
    """One topic with one partition."""

    def __init__(self, broker: LiveBroker, name: str) -> None:
        self.broker = broker
        self.name = name

    def set(self, key: str, value: str, *, validate_only: bool = False) -> None:
        """IncrementalAlterConfigs; it is in force when this returns."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, self.name, incremental_configs=[entry])
        asked = self.broker.admin.incremental_alter_configs([resource], validate_only=validate_only)
        asked[resource].result(PATIENCE)

    def produce(self, at: int, value: bytes | None = b"x" * 200, key: str = "k") -> Any:
        """One record; (kind of time, time in ms) as the answer tells it, or the error's name."""
        told: list[Any] = []
        self.broker.producer.produce(
            self.name, value, key, partition=0, timestamp=at,
            on_delivery=lambda error, message: told.append(
                message.timestamp() if error is None else error.name()
            ),
        )  # fmt: skip
        assert self.broker.producer.flush(PATIENCE) == 0
        return told[0]

    def offset_at(self, timestamp: int) -> int:
        """The first offset at or after a time, -1 for none."""
        place = Place(self.name, 0, timestamp)
        (found,) = self.broker.consumer.offsets_for_times([place], timeout=PATIENCE)
        return int(found.offset)

    def records(self) -> list[Any]:
        """Every message from the start to the end."""
        place = Place(self.name, 0)
        low, high = self.broker.consumer.get_watermark_offsets(place, timeout=PATIENCE)
        self.broker.consumer.assign([Place(self.name, 0, low)])
        got: list[Any] = []
        while not got or got[-1].offset() < high - 1:
            if low == high:
                break
            message = self.broker.consumer.poll(PATIENCE)
            assert message is not None, f"silence after {len(got)}"
            if message.error() is not None:
                raise KafkaException(message.error())
            got.append(message)
        self.broker.consumer.unassign()
        return got

    def states(self) -> list[str]:
        """State of each segment: closed or active."""
        return [str(each["state"]) for each in self.broker.http.segments(self.name)]

    def roll_deadline(self) -> int:
        """Time when the active segment ends by itself, ms."""
        found = self.broker.http.get(f"/api/topics/{self.name}/segments")
        deadline: int = found["partitions"][0]["roll"]["deadline"]["ms"]
        return deadline

    def bases(self) -> list[int]:
        """The segments' base offsets."""
        return [int(each["base_offset"]) for each in self.broker.http.segments(self.name)]

    def files(self, suffix: str) -> list[int]:
        """The base offsets of the files whose names end so."""
        found = (self.broker.data_dir / f"{self.name}-0").glob(f"*{suffix}")
        return sorted(int(path.name[:20]) for path in found)

    def content(self, base: int, suffix: str) -> bytes:
        """Bytes of a segment's file, once it is there: index files follow their log's sync."""
        path = self.broker.data_dir / f"{self.name}-0" / f"{base:020d}{suffix}"
        for _ in range(100):
            if path.exists() and path.stat().st_size:
                break
            self.broker.step("1s")
        return path.read_bytes()
