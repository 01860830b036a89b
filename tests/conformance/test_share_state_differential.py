"""The share coordinator's own APIs (83 to 87), random requests to a real Kafka 4.3 and to us.

States begin, are written in batches that overlap, of older and newer epochs, are read and summed
up, and go, by leaders of older and newer epochs: both have to give the same codes, starts and
batches. Neighbours that are alike are compared as one: a Kafka leaves some apart.
HOROLOG_STATE_SEEDS (40) histories.
"""

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from protocol.apis import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    write_share_group_state,
)
from protocol.apis.read_share_group_state import StateBatch
from tests.conformance.test_share_offsets_differential import COMMON, KAFKA, OffsetsSide
from tests.support.kafka.kafka_oracle import available, start_kafka
from tests.support.worlds.broker_process import start_broker

SEEDS = int(os.environ.get("HOROLOG_STATE_SEEDS", "40"))
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.timeout(240 + SEEDS),
    pytest.mark.skipif(not available(), reason="needs java and mvn"),
]
STEPS, OFFSETS = 14, 30
STATES = (0, 2, 4)


class StateSide(OffsetsSide):
    """One broker, asked as a leader of partitions asks its share coordinator."""

    def ask(self, api: Any, kind: str, group: str, version: int, **fields: Any) -> Any:
        """The result of partition one-0."""
        name = f"{kind}ShareGroupState"
        part = getattr(api, f"{name}Partition")(partition=0, **fields)
        topic = getattr(api, f"{name}Topic")(topic_id=self.ids["one"], partitions=[part])
        request = getattr(api, f"{name}Request")(group_id=group, topics=[topic])
        return self.wire.call(request, version).results[0].partitions[0]

    def begin(self, group: str, epoch: int, start: int) -> None:
        told = self.ask(
            initialize_share_group_state, "Initialize", group, 0,
            state_epoch=epoch, start_offset=start,
        )  # fmt: skip
        self.said.append(("begun", epoch, start, told.error_code))

    def write(self, group: str, **fields: Any) -> None:
        told = self.ask(write_share_group_state, "Write", group, 1, **fields)
        self.said.append(("written", str(fields), told.error_code))

    def read(self, group: str, leader_epoch: int) -> None:
        told = self.ask(read_share_group_state, "Read", group, 0, leader_epoch=leader_epoch)
        batches: list[tuple[int, int, int, int]] = []
        for each in told.state_batches:
            first, alike = each.first_offset, (each.delivery_state, each.delivery_count)
            if batches and batches[-1][1:] == (first - 1, *alike):
                first = batches.pop()[0]
            batches.append((first, each.last_offset, *alike))
        self.said.append(("read", told.error_code, told.state_epoch, told.start_offset, batches))

    def forget(self, group: str) -> None:
        told = self.ask(delete_share_group_state, "Delete", group, 0)
        self.said.append(("forgotten", told.error_code))


def batches_of(dice: random.Random) -> list[Any]:
    """Ranges in order, that do not overlap one another, but those of before."""
    found, at = [], dice.randrange(OFFSETS)
    for _ in range(dice.randrange(4)):
        last = at + dice.randrange(6)
        found.append(
            StateBatch(
                first_offset=at, last_offset=last, delivery_state=dice.choice(STATES),
                delivery_count=dice.randrange(1, 4),
            )
        )  # fmt: skip
        at = last + 1 + dice.randrange(4)
    return found


def live(side: StateSide, seed: int) -> None:
    """One history."""
    dice, group = random.Random(seed), f"state-{seed}"
    start, epoch = 0, 1
    leader = 0
    side.read(group, 0) if dice.random() < 0.2 else None
    side.begin(group, epoch, dice.choice((-1, 0)))
    for _ in range(STEPS):
        leader += dice.random() < 0.15
        asking = max(leader - (dice.random() < 0.2), -1)
        match dice.randrange(10):
            case 0:
                epoch += dice.randrange(2)
                side.begin(group, epoch, start)
            case 1:
                side.read(group, asking)
            case 2:
                side.forget(group)
            case _:
                start += dice.choice((0, 0, 0, dice.randrange(5)))
                side.write(
                    group, state_epoch=epoch - (dice.random() < 0.1),
                    leader_epoch=asking, start_offset=dice.choice((-1, start)),
                    delivery_complete_count=dice.choice((-1, 0, dice.randrange(5))),
                    state_batches=batches_of(dice),
                )  # fmt: skip
        side.summary(group)
    side.read(group, leader)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StateSide, StateSide]]:
    root = tmp_path_factory.mktemp("states-both")
    with ExitStack() as stack:
        kafka = stack.enter_context(start_kafka(root / "kafka", KAFKA))
        ours = stack.enter_context(start_broker(root / "ours", COMMON))
        sides = StateSide(kafka.bootstrap), StateSide(ours.bootstrap)
        for side in sides:
            stack.callback(side.wire.close)
        yield sides


def test_both_remember_the_same(both: tuple[StateSide, StateSide]) -> None:
    for side in both:
        side.said.clear()
    for seed in range(SEEDS):
        for side in both:
            live(side, seed)
        kafka, ours = (side.said for side in both)
        different = [
            (number, of_kafka, of_us)
            for number, (of_kafka, of_us) in enumerate(zip(kafka, ours, strict=True))
            if of_kafka != of_us
        ]
        assert different == [], f"seed {seed}: {kafka[: different[0][0]][-6:]}"
        kafka.clear()
        ours.clear()
