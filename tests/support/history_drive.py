"""Lives many histories on one broker at once, and writes down all that the broker says.

Every request speaks of all topics, so hundreds of histories cost a few hundred requests. What is
written down holds nothing that two equal brokers could differ in: a time that the broker stamped is
`("stamp", n)`, the n-th of its topic; leader epochs are known or not known.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from protocol.apis import (
    create_topics,
    delete_records,
    describe_configs,
    fetch,
    incremental_alter_configs,
    list_offsets,
    produce,
)
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from tests.support.histories import HOUR_MS, STEPS, Alter, History, Settings, Trim, version_of_step
from tests.support.history_batches import Write
from tests.support.node_process import NodeProcess
from tests.support.wire import WireClient

CANARY, CLEANED_CANARY = "canary", "canary-of-the-cleaner"
SETTINGS_CANARY = "canary-of-settings"
CANARIES = (CANARY, CLEANED_CANARY, SETTINGS_CANARY)
STAMPS_APART_SECONDS = 0.003
SETTLE_SECONDS = 0.05
WITHIN_SECONDS = 60
TOPICS_AT_A_TIME = 400
SPECIAL = (-1, -2, -3, -4, -5, -6, -7, 0, 1, 2**62, 2**63 - 1)
NO_ANSWER = (0, -1, -1, False)
TOPIC = 2  # kind of a resource with settings

Told = dict[str, Any]


@dataclass(slots=True, eq=False)
class Life:
    """One history on this broker."""

    history: History
    topic_id: UUID = UUID(int=0)
    told: Told = field(default_factory=dict)
    records: list[tuple[int, int]] = field(default_factory=list)
    """Time as readers see it and offset of all that was ever accepted, in order of appending."""
    stamps: dict[int, int] = field(default_factory=dict)
    """Times that the broker gave, with their numbers."""
    start: int = 0
    end: int = 0
    lookups: dict[str, Any] = field(default_factory=dict)
    """What a search by time finds in a plain list of the records."""

    def named(self, at: int) -> Any:
        """A time that does not depend on the broker's clock."""
        return ("stamp", self.stamps[at]) if at in self.stamps else at

    def first_at_or_after(self, timestamp: int) -> tuple[int, Any, int, bool]:
        """The one-line model: the first record at or after the log start that is late enough."""
        for at, offset in self.records:
            if at >= timestamp and offset >= self.start:
                return 0, self.named(at), offset, True
        return NO_ANSWER


class Driver:
    """One broker, started and stopped as the histories ask."""

    def __init__(
        self,
        start: Callable[[Path], NodeProcess],
        data_dir: Path,
        histories: Sequence[History],
        now_ms: int,
    ) -> None:
        self._start = start
        self.data_dir = data_dir
        self.now_ms = now_ms
        self.lives = [Life(history) for history in histories]
        self._by_topic = {life.history.topic: life for life in self.lives}
        self._client: WireClient
        self.files_at_stop: Callable[[Life, Path], Told] = lambda *_: {}

    def live(self) -> None:
        """All phases, with a stop after each one."""
        node = self._start_node()
        self._create()
        for phase, _ in enumerate(STEPS, 1):
            if phase > 1:
                node = self._start_node()
            self._steps(phase)
            self._let_retention_pass()
            if phase == 2:
                self._retain()
            self._describe(phase)
            self._ask_for_offsets(phase)
            self._fetch(phase)
            self._client.close()
            node.stop()
            for life in self.lives:
                files = self.files_at_stop(life, self.data_dir)
                life.told |= {f"{phase} stopped: {name}": each for name, each in files.items()}

    # -- the broker

    def _start_node(self) -> NodeProcess:
        node = self._start(self.data_dir)
        host, _, port = node.bootstrap.rpartition(":")
        self._client = WireClient(host, int(port))
        if any(life.told for life in self.lives):
            self._wait_for_leaders()
        return node

    def _wait_for_leaders(self) -> None:
        """Kafka answers before the topics can be used."""
        waiting = [*self._by_topic, *CANARIES]
        deadline = time.monotonic() + WITHIN_SECONDS
        while waiting:
            assert time.monotonic() < deadline, f"{len(waiting)} topics without leader"
            answers = self._offsets(dict.fromkeys(waiting, -1), version=5)
            waiting = [name for name, answer in answers.items() if answer.error_code]

    # -- topics and settings

    def _create(self) -> None:
        day: Settings = {"retention.ms": str(24 * HOUR_MS)}
        wanted: dict[str, Settings] = dict.fromkeys(CANARIES, day)
        wanted[CLEANED_CANARY] = day | {"cleanup.policy": "compact,delete"}
        forever: Settings = {"retention.ms": "-1"}
        wanted |= {life.history.topic: life.history.settings | forever for life in self.lives}
        for names in _portions(wanted):
            topics = [_creatable(name, wanted[name]) for name in names]
            request = create_topics.CreateTopicsRequest(topics=topics, timeout_ms=30_000)
            for result in self._client.call(request, 7).topics:
                if life := self._by_topic.get(result.name):
                    life.told["create"] = result.error_code
                    life.topic_id = result.topic_id
        self._wait_for_leaders()

    def _alter(self, changes: dict[str, Settings], label: str) -> None:
        """Changes settings, and waits until the last one is in force."""
        for names in _portions(changes):
            resources = [_alteration(name, changes[name]) for name in names]
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
            for answer in self._client.call(request, 1).responses:
                if life := self._by_topic.get(answer.resource_name):
                    life.told[label] = answer.error_code
        for value, code in (("1", 10), (None, 0)):
            request = incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[_alteration(SETTINGS_CANARY, {"max.message.bytes": value})]
            )
            self._client.call(request, 1)
            batch = bytes(build_batch([(self.now_ms, b"k", b"v")]))
            _until(lambda code=code: self._settings_canary(batch) == code)  # type: ignore[misc]
        time.sleep(SETTLE_SECONDS)

    def _settings_canary(self, batch: bytes) -> int:
        answer = self._produced({SETTINGS_CANARY: batch}, 9)[SETTINGS_CANARY]
        return int(answer.error_code)

    # -- steps

    def _steps(self, phase: int) -> None:
        for index in range(STEPS[phase - 1]):
            began = time.monotonic()
            steps = [(life, life.history.phases[phase - 1][index]) for life in self.lives]
            where = f"{phase}.{index}"
            alters = {x.history.topic: s.settings for x, s in steps if isinstance(s, Alter)}
            if alters:
                self._alter(alters, f"{where} alter")
            self._write({x: s for x, s in steps if isinstance(s, Write)}, phase, index)
            self._trim([(x, s) for x, s in steps if isinstance(s, Trim)], f"{where} trim")
            time.sleep(max(0, began + STAMPS_APART_SECONDS - time.monotonic()))

    def _write(self, writes: "dict[Life, Write]", phase: int, index: int) -> None:
        batches = {life.history.topic: write.records() for life, write in writes.items()}
        for names in _portions(batches):
            portion = {name: batches[name] for name in names}
            answers = self._produced(portion, version_of_step(phase, index), -(index % 2) or 1)
            for name, answer in answers.items():
                life = self._by_topic[name]
                self._wrote(life, writes[life], answer, f"{phase}.{index} produce")

    def _wrote(self, life: Life, write: Write, answer: Any, label: str) -> None:
        stamp = answer.log_append_time_ms
        is_new = not answer.error_code and answer.base_offset >= life.end
        if is_new:
            if stamp >= 0:
                assert stamp not in life.stamps
                life.stamps[stamp] = len(life.stamps)
            times = (stamp,) * len(write.times) if stamp >= 0 else write.effective_times()
            life.records += zip(times, (answer.base_offset + d for d in write.deltas), strict=True)
            life.end = answer.base_offset + len(write.times)
        life.told[label] = {
            "error": answer.error_code,
            "base": answer.base_offset,
            "stamp": life.named(stamp),
            "start": answer.log_start_offset,
            "bad records": [each.batch_index for each in answer.record_errors],
        }

    def _produced(self, batches: dict[str, bytes], version: int, acks: int = -1) -> dict[str, Any]:
        ids = {life.topic_id: name for name, life in self._by_topic.items()}
        topics = [
            produce.TopicProduceData(
                name=name,
                topic_id=self._by_topic[name].topic_id if version > 12 else UUID(int=0),
                partition_data=[produce.PartitionProduceData(index=0, records=records)],
            )
            for name, records in batches.items()
        ]
        request = produce.ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=topics)
        return {
            ids[each.topic_id] if version > 12 else each.name: each.partition_responses[0]
            for each in self._client.call(request, version).responses
        }

    def _trim(self, trims: "list[tuple[Life, Trim]]", label: str) -> None:
        if not trims:
            return
        offsets = {x.history.topic: trim.offset_in(x.start, x.end) for x, trim in trims}
        topics = [
            delete_records.DeleteRecordsTopic(
                name=name,
                partitions=[delete_records.DeleteRecordsPartition(partition_index=0, offset=at)],
            )
            for name, at in offsets.items()
        ]
        request = delete_records.DeleteRecordsRequest(topics=topics, timeout_ms=10_000)
        for answer in self._client.call(request, 2).topics:
            life, result = self._by_topic[answer.name], answer.partitions[0]
            life.told[label] = (offsets[answer.name], result.error_code, result.low_watermark)
            if not result.error_code:
                life.start = result.low_watermark

    # -- retention

    def _retain(self) -> None:
        """The histories' limits for a while; then none again."""
        self._alter({x.history.topic: x.history.limits for x in self.lives}, "limit")
        self._let_retention_pass()
        none: Settings = {"retention.ms": "-1", "retention.bytes": None}
        self._alter({life.history.topic: none for life in self.lives}, "limit no more")
        for life in self.lives:
            life.told["retained from"] = life.start

    def _let_retention_pass(self) -> None:
        """Returns when a round over all logs was made whole, begun after the call.

        A canary that dies was looked at; between its second and third death lies a whole round.
        """
        old = bytes(build_batch([(self.now_ms - 100 * HOUR_MS, b"k", b"v")]))
        for _ in range(3):
            placed = self._produced({CANARY: old, CLEANED_CANARY: old}, 9)
            ends = {name: each.base_offset + 1 for name, each in placed.items()}
            _until(lambda ends=ends: self._starts(ends) == ends)  # type: ignore[misc]
        starts = self._starts(self._by_topic)
        for name, life in self._by_topic.items():
            life.start = starts[name]

    def _starts(self, names: "dict[str, Any]") -> dict[str, int]:
        answers: dict[str, Any] = {}
        for portion in _portions(names):
            answers |= self._offsets(dict.fromkeys(portion, -2), version=5)
        return {name: answer.offset for name, answer in answers.items()}

    # -- questions

    def _ask_for_offsets(self, phase: int) -> None:
        questions = {life: list(self._questions(life, phase)) for life in self.lives}
        for turn in range(max(map(len, questions.values()))):
            asked = {x: each[turn] for x, each in questions.items() if turn < len(each)}
            version = 1 + turn % 11
            times = {life.history.topic: at for life, (_, at) in asked.items()}
            for names in _portions(times):
                portion = {name: times[name] for name in names}
                for name, answer in self._offsets(portion, version, turn % 2).items():
                    life = self._by_topic[name]
                    label = f"{phase} offset {asked[life][0]} v{version}"
                    life.told[label] = (
                        answer.error_code,
                        life.named(answer.timestamp),
                        answer.offset,
                        answer.leader_epoch >= 0,
                    )
                    self._look_up(life, label, times[name], version)

    def _look_up(self, life: Life, label: str, timestamp: int, version: int) -> None:
        if timestamp >= 0:
            *answer, is_epoch_known = life.first_at_or_after(timestamp)
            life.lookups[label] = (timestamp, (*answer, is_epoch_known and version >= 4))

    def _questions(self, life: Life, phase: int) -> Iterator[tuple[Any, int]]:
        """Names of times, and the times: each one in the log, just before, just after."""
        yield from ((at, at) for at in SPECIAL)
        times = sorted({at for at, _ in life.records if at >= 0}, key=lambda at: life.named(at) != at)
        dice = random.Random(life.history.number)
        if phase < len(STEPS):
            times = dice.sample(times, min(8, len(times)))
        for at in times:
            for delta in (-1, 0, 1):
                if 0 <= at + delta < 2**63:
                    yield (life.named(at), delta), at + delta

    def _offsets(self, times: dict[str, int], version: int, isolation: int = 0) -> dict[str, Any]:
        topics = [
            list_offsets.ListOffsetsTopic(
                name=name,
                partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=at)],
            )
            for name, at in times.items()
        ]
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=5000
        )
        answer = self._client.call(request, version)
        return {each.name: each.partitions[0] for each in answer.topics}

    def _fetch(self, phase: int) -> None:
        """From the start, the middle, the end and beyond; limits that cut batches."""
        limits = (1 << 20, 1, 300, 1000, 5000)
        for turn, limit in enumerate(limits):
            for names in _portions(self._by_topic):
                wanted = {name: self._wanted(self._by_topic[name], turn) for name in names}
                topics = [
                    fetch.FetchTopic(
                        topic=name,
                        partitions=[
                            fetch.FetchPartition(
                                partition=0, fetch_offset=at, partition_max_bytes=limit
                            )
                        ],
                    )
                    for name, at in wanted.items()
                ]
                request = fetch.FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics)
                for answer in self._client.call(request, 4 + (phase + turn) % 9).responses:
                    life, part = self._by_topic[answer.topic], answer.partitions[0]
                    life.told[f"{phase} fetch {wanted[answer.topic]} limit {limit}"] = (
                        part.error_code,
                        part.high_watermark,
                        part.last_stable_offset,
                        part.log_start_offset,
                        [
                            (header.base_offset, header.record_count)
                            for _, header in iter_headers(memoryview(part.records or b""))
                        ],
                    )

    @staticmethod
    def _wanted(life: Life, turn: int) -> int:
        dice = random.Random(f"{life.history.number} {turn}")
        if turn == 0:
            return dice.choice((life.start, life.start - 1, life.end, life.end + 1, 10**7))
        return dice.randint(life.start, max(life.start, life.end - 1))

    def _describe(self, phase: int) -> None:
        keys = sorted({key for life in self.lives for key in life.history.settings})
        for names in _portions(self._by_topic):
            resources = [
                describe_configs.DescribeConfigsResource(
                    resource_type=TOPIC, resource_name=name, configuration_keys=keys
                )
                for name in names
            ]
            request = describe_configs.DescribeConfigsRequest(resources=resources)
            for result in self._client.call(request, 4).results:
                self._by_topic[result.resource_name].told[f"{phase} settings"] = {
                    each.name: (each.value, each.config_source, each.read_only)
                    for each in result.configs
                }


def _creatable(name: str, settings: Settings) -> create_topics.CreatableTopic:
    return create_topics.CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            create_topics.CreatableTopicConfig(name=key, value=value)
            for key, value in settings.items()
        ],
    )


def _alteration(name: str, settings: Settings) -> incremental_alter_configs.AlterConfigsResource:
    return incremental_alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(
                name=key, config_operation=int(value is None), value=value
            )
            for key, value in settings.items()
        ],
    )


def _portions(names: "dict[str, Any]") -> Iterator[list[str]]:
    """Names in portions that a request can hold."""
    for _, portion in groupby(enumerate(names), lambda each: each[0] // TOPICS_AT_A_TIME):
        yield [name for _, name in portion]


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.02)
