"""Clients of many languages subscribe, unmodified: one dies, the broker dies, no record is missed.

One story, told by all clients at the same time, each on a topic and in a group of its own:
two members share the topic; one is killed (-9) and the other takes over; the broker is killed (-9)
and restarted, and the member goes on; a third comes after it and begins where the group had
committed. What each client did is judged in a test of its own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic, start_node
from tests.conformance.test_group_clients import QUICK
from tests.conformance.test_kill import free_address
from tests.support.clients.client_programs import CLIENTS, ClientProgram, Running

EXERCISES = {
    "confluent-kafka, kafka-python, aiokafka, kafkajs, franz-go, sarama, kafka-go, kafka-clients": (
        "writes; two members share a topic, one is killed (-9), then the broker, then an heir comes"
    ),
}

PARTITIONS = 4
FIRST, MORE = 100, 20  # records: by the client itself, and to each partition later
PATIENCE_SECONDS = 60


@dataclass(eq=False)
class Story:
    """What one client did."""

    client: ClientProgram
    stack: ExitStack
    produced: bool = False
    members: list[Running] = field(default_factory=list)
    shared: bool = False
    taken_over: bool = False
    committed: list[int] = field(default_factory=list)
    committed_after: list[int] = field(default_factory=list)
    went_on: bool = False
    ends: list[int] = field(default_factory=list)
    heir_began: list[tuple[int, int]] = field(default_factory=list)

    @property
    def topic(self) -> str:
        return f"of-{self.client.name}"

    @property
    def group(self) -> str:
        return f"group-{self.client.name}"

    def subscribe(self, bootstrap: str) -> Running:
        """One more member."""
        member = self.client.subscribe(bootstrap, self.topic, self.group)
        self.stack.callback(member.close)
        self.members.append(member)
        return member

    def missing(self, ends: list[int]) -> list[tuple[int, int]]:
        """The records that no member has read."""
        read = {record for member in self.members for record in member.read()}
        return [
            (partition, offset)
            for partition, end in enumerate(ends)
            for offset in range(end)
            if (partition, offset) not in read
        ]


class Watch:
    """What the broker says of topics and groups."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def members(self, story: Story) -> list[int]:
        """How many partitions each member has."""
        try:
            described = self.admin.describe_consumer_groups([story.group])[story.group].result(10)
        except KafkaException:
            return []
        return sorted(len(each.assignment.topic_partitions) for each in described.members)

    def ends(self, story: Story) -> list[int]:
        return [end for _, end in self._ask(story, self._watermarks)]

    def committed(self, story: Story) -> list[int]:
        return self._ask(story, self._offsets)

    def _ask(self, story: Story, question: Callable[[Consumer, str], list]) -> list:  # type: ignore[type-arg]
        asker = Consumer({"bootstrap.servers": self.bootstrap, "group.id": story.group})
        try:
            return question(asker, story.topic)
        except KafkaException:
            return []
        finally:
            asker.close()

    @staticmethod
    def _watermarks(asker: Consumer, topic: str) -> list[tuple[int, int]]:
        return [
            asker.get_watermark_offsets(TopicPartition(topic, number), timeout=10)
            for number in range(PARTITIONS)
        ]

    @staticmethod
    def _offsets(asker: Consumer, topic: str) -> list[int]:
        wanted = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return [each.offset for each in asker.committed(wanted, timeout=10)]


def write(bootstrap: str, stories: list[Story]) -> None:
    """Some records to each partition of each topic."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for story in stories:
        for number in range(MORE):
            for partition in range(PARTITIONS):
                producer.produce(story.topic, b"%d" % number, partition=partition)
    assert producer.flush(30) == 0


class Telling:
    """The story, for all at the same time; who falls behind is not waited for again."""

    def __init__(self, stories: list[Story], address: str, data: Path) -> None:
        self.stories = list(stories)
        self.address = address
        self.data = data
        self.node = start_node(data, QUICK, listen=address)
        self.watch = Watch(address)

    def tell(self) -> None:
        try:
            self.write_with_each()
            self.share()
            self.kill_one_of_two()
            self.kill_the_broker()
            self.bring_an_heir()
            self.node.stop()
        finally:
            self.node.kill()

    def write_with_each(self) -> None:
        for story in self.stories:
            create_topic(self.watch.admin, story.topic, PARTITIONS)
        begun = [
            (each, each.client.produce(self.address, each.topic, FIRST)) for each in self.stories
        ]
        for story, producing in begun:
            story.stack.callback(producing.close)
            story.produced = producing.wait() == 0 and sum(self.watch.ends(story)) == FIRST

    def share(self) -> None:
        for story in self.stories:
            story.subscribe(self.address)
            story.subscribe(self.address)
        for story in self.wait(self._is_shared):
            story.shared = True

    def kill_one_of_two(self) -> None:
        write(self.address, self.stories)
        for story in self.stories:
            story.members[0].kill()
        self.write_and_wait()
        for story in self.stories:
            story.taken_over = True
            story.committed = self.watch.committed(story)

    def kill_the_broker(self) -> None:
        self.node.kill()
        self.node = start_node(self.data, QUICK, listen=self.address)
        for story in self.wait(lambda each: bool(self.watch.committed(each))):
            story.committed_after = self.watch.committed(story)
        self.write_and_wait()
        for story in self.stories:
            story.went_on = True

    def bring_an_heir(self) -> None:
        for story in self.stories:
            story.members[1].kill()
            story.subscribe(self.address)
        write(self.address, self.stories)
        self.wait(lambda each: not each.missing(self.watch.ends(each)))
        for story in self.stories:
            story.heir_began = first_of_each(story.members[2].read())

    def write_and_wait(self) -> None:
        """More records; all are read and committed before this returns."""
        write(self.address, self.stories)
        for story in self.stories:
            story.ends = self.watch.ends(story)
        self.wait(lambda each: not each.missing(each.ends))
        self.wait(lambda each: self.watch.committed(each) == each.ends)

    def wait(self, true: Callable[[Story], bool]) -> list[Story]:
        """Waits until it holds for each; goes on with those for whom it came to hold."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        waiting, self.stories = self.stories, []
        while waiting and time.monotonic() < deadline:
            self.stories += [story for story in waiting if true(story)]
            waiting = [story for story in waiting if story not in self.stories]
            time.sleep(0.1)
        return self.stories

    def _is_shared(self, story: Story) -> bool:
        shares = self.watch.members(story)
        return len(shares) == 2 and min(shares) > 0 and sum(shares) == PARTITIONS


def first_of_each(read: list[tuple[int, int]]) -> list[tuple[int, int]]:
    first: dict[int, int] = {}
    for partition, offset in read:
        first.setdefault(partition, offset)
    return sorted(first.items())


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Story]]:
    """By client, those that can run on this machine."""
    with ExitStack() as stack:
        told = [Story(client, stack) for client in CLIENTS if not client.absent()]
        Telling(told, free_address(), tmp_path_factory.mktemp("matrix") / "data").tell()
        yield {story.client.name: story for story in told}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_shares_takes_over_and_goes_on(
    stories: dict[str, Story], client: ClientProgram
) -> None:
    if client.absent():
        pytest.skip(client.absent())
    story = stories[client.name]
    assert story.produced, "its own producer wrote everything"
    assert story.shared, "two members share the topic"
    assert story.missing(story.ends) == [], "the one that lives read what the others did not"
    assert story.taken_over, "and committed it"
    assert story.committed == story.committed_after, "commits outlive kill -9 of the broker"
    assert story.went_on, "it went on when the broker was back"
    began = dict(story.heir_began)
    assert [began.get(number) for number in range(PARTITIONS)] == story.ends
