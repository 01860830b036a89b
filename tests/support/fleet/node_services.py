"""The services of nodes of one fleet, without processes: what one decides, the others follow."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from broker.fleet.authority import FleetAuthority
from broker.fleet.catalog.rows import FleetFacts
from broker.fleet.committer import FleetReach
from broker.fleet.fleet_commit import FleetCommit
from broker.fleet.image import BrokerImage
from broker.fleet.led_partitions import LedPartitions, nobody_yet
from broker.fleet.local_logs import LocalLogs
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from broker.quotas.service import DOCUMENT as QUOTAS
from broker.security.authority import DOCUMENT as ACLS
from broker.security.delegation.tokens import DOCUMENT as TOKENS
from broker.security.users import DOCUMENT as USERS
from broker.topics.new_topic import NewTopic
from tests.support.fleet.hand_lease import HandLease
from tests.support.fleet.inline import Inline
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.worlds.handler_world import World

SHARDS = 4
NOW = 1_700_000_000_000


class FleetNodeWorld(World):
    """The services of one node, without a process."""

    def join(self, rows: ModelCatalog, node_id: int) -> None:
        self.rows, self.other_nodes, self.deleted = rows, dict[int, Any](), list[str]()
        broker = self.broker
        self.commits = FleetCommit(self.commit, LoopTime(), lambda *_: None, 5.0)
        self.led = LedPartitions(
            node_id, broker.topics, self.commits, {}, monotonic=time.monotonic,
            lease=HandLease(),
        )  # fmt: skip
        self.image = BrokerImage(
            rows, broker.topics, self.led, lambda living, _: self.other_nodes.update(living),
            lambda names, _: self.deleted.extend(names), monotonic=time.monotonic,
        )  # fmt: skip
        reach = FleetReach(rows, None, LoopTime(), FleetTimes(), Inline(), FleetTally())
        authority = FleetAuthority(reach, self.image, SHARDS)
        broker.topics.authority = authority
        made = broker.topics._make_partition
        broker.topics._make_partition = lambda log: nobody_yet(made(log))
        for name, service in (
            (QUOTAS, broker.quotas), (USERS, broker.users), (ACLS, broker.authority),
            (TOKENS, broker.tokens),
        ):  # fmt: skip
            service.authority = authority
            self.image.followers[name] = service.follow
        self.logs = LocalLogs(broker.logs, broker.lane, broker.config.topic_config, self.led)

    async def create(self, name: str, partitions: int = 1, **overrides: str) -> UUID:
        topics = self.broker.topics
        new = NewTopic(name, uuid4(), partitions, overrides)
        async with topics.changing:
            await topics.create([new])
        return new.topic_id

    async def catches_up(self) -> None:
        await self.image.follow(self.rows.topics_version)

    def shapes(self) -> dict[str, int]:
        topics = self.broker.topics.image.topics
        return {name: len(each.partitions) for name, each in topics.items()}


def two_nodes(**settings: str) -> Sequence[FleetNodeWorld]:
    """Two nodes of one fleet, on the running loop."""
    rows = ModelCatalog(FleetFacts(uuid4(), "cluster", SHARDS), lambda: NOW)
    both = [FleetNodeWorld(None, number, **settings) for number in (1, 2)]
    for number, each in enumerate(both, 1):
        each.join(rows, number)
    return both
