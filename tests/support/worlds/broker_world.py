"""A whole broker on the simulated disk, whose life is written down in a ledger as it goes.

Handlers, coordinators, catalogue, quotas and logs are the real ones; lanes and the fsync thread do
their work at once, so a seed gives the same calls each time. Every verb asks, and notes the answer.
"""

import random
from typing import Any

from broker.quotas.table import PRODUCER_BYTE_RATE
from protocol.apis import (
    alter_client_quotas,
    create_topics,
    delete_records,
    delete_topics,
    incremental_alter_configs,
    init_producer_id,
    list_offsets,
)
from protocol.errors import ErrorCode
from storage.cleaner.cleanable_logs import learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.env import Env
from storage.errors import DiskError, StorageError
from storage.log.lifecycle import learn_times, plan_retention
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.records.logs import make_durable
from tests.support.worlds.group_world import GroupWorld
from tests.support.worlds.transaction_world import PromptCommit, TransactionWorld

SMALL = {
    "transaction_state_log_num_partitions": "1",
    "offsets_topic_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
    "share_coordinator_snapshot_update_records_per_snapshot": "3",
    "horolog_durability": "by-acks",
    "group_initial_rebalance_delay_ms": "0",
    "log_segment_delete_delay_ms": "0",
    "log_index_interval_bytes": "150",
}
EVERY_BROKER = ""
BROKER, TOPIC = 4, 2
SET = 0


class FallibleCommit(PromptCommit):
    """An fsync thread that is done at once, and whose disk may refuse."""

    def sync(self) -> None:
        requested, self.requested = self.requested, []
        for log, _, done in requested:
            try:
                make_durable(log)
            except DiskError as error:
                done(error)
            else:
                self.on_durable(log)
                done(None)


class BrokerWorld(TransactionWorld, GroupWorld):
    """A broker as handlers see it, with the verbs that the ledger does not need."""

    commit_kind = FallibleCommit

    def __init__(self, fs: SimFileSystem | None = None, seed: int = 0, **settings: str) -> None:
        super().__init__(fs, seed, **{**SMALL, **settings})
        self.settings = settings

    async def reborn(self, fs: SimFileSystem | None = None) -> "BrokerWorld":
        """A broker on what is left, after kill -9 unless given; the wall clock goes on."""
        again = BrokerWorld(fs or self.remains(), self.seed + 1, **self.settings)
        again.clock.step(self.clock.now_ms() - again.clock.now_ms())
        await again.loaded()
        await again.rests()
        return again

    def ends(self) -> None:
        """Nothing of it is left on the loop."""
        self.broker.groups.stop()

    async def stop(self) -> bool:
        """Stops as a graceful stop does, in its order; True when it was clean."""
        self.broker.groups.stop()
        await self.broker.transactions.stop()
        return bool(self.broker.logs.close())

    def log(self, topic: str, partition: int = 0) -> Log:
        return self.partition(topic, partition).log

    def logs(self) -> list[Log]:
        return list(self.broker.logs.logs.values())

    # --- requests ---

    async def create_topic(self, name: str, partitions: int, settings: dict[str, str]) -> Any:
        """CreateTopics; the result of the topic, which may be a refusal."""
        rows = [
            create_topics.CreatableTopicConfig(name=key, value=value)
            for key, value in settings.items()
        ]
        topic = create_topics.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=rows
        )
        request = create_topics.CreateTopicsRequest(topics=[topic])
        return (await self.call(request, 7)).topics[0]

    async def delete_topic(self, name: str) -> int:
        wanted = delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=name)]
        )
        return int((await self.call(wanted, 6)).responses[0].error_code)

    async def set_configs(self, kind: int, name: str, settings: dict[str, str]) -> int:
        """IncrementalAlterConfigs."""
        rows = [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=SET, value=value)
            for key, value in settings.items()
        ]
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=rows
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        return int((await self.call(request, 1)).responses[0].error_code)

    async def set_quota(self, user: str, rate: float) -> int:
        entry = alter_client_quotas.EntryData(
            entity=[alter_client_quotas.EntityData(entity_type="user", entity_name=user)],
            ops=[alter_client_quotas.OpData(key=PRODUCER_BYTE_RATE, value=rate, remove=False)],
        )
        request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
        return int((await self.call(request, 1)).entries[0].error_code)

    async def new_producer_id(self) -> int:
        """An id for an idempotent producer; -1 when the disk refuses."""
        request = init_producer_id.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=1000
        )
        answer = await self.call(request, 4)
        return -1 if answer.error_code else int(answer.producer_id)

    async def delete_records(self, topic: str, partition: int, before: int) -> int:
        """The new log start; -1 when it is refused."""
        asked = delete_records.DeleteRecordsRequest(
            topics=[
                delete_records.DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        delete_records.DeleteRecordsPartition(
                            partition_index=partition, offset=before
                        )
                    ],
                )
            ],
            timeout_ms=1000,
        )
        return int((await self.call(asked, 2)).topics[0].partitions[0].low_watermark)

    async def offset_at(self, topic: str, partition: int, at: int, isolation: int) -> Any:
        """ListOffsets: (time, offset), (-1, -1) for none."""
        asked = list_offsets.ListOffsetsPartition(partition_index=partition, timestamp=at)
        request = list_offsets.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[list_offsets.ListOffsetsTopic(name=topic, partitions=[asked])],
        )
        found = (await self.call(request, 7)).topics[0].partitions[0]
        assert found.error_code == ErrorCode.NONE, f"ListOffsets answers {found.error_code}"
        return found.timestamp, found.offset

    # --- what time does in a real broker ---

    def sync(self, log: Log) -> bool:
        """The fsync thread's round for a log; whether it succeeded."""
        try:
            make_durable(log)
        except StorageError:
            return False
        return True

    def remove_old(self, log: Log, decided: Any) -> int:
        """Retention; `decided(offset)` hears what will be the log start before it is."""
        learn_times(log, 1000)
        plan = plan_retention(log, self.clock.now_ms())
        decided(plan.start_offset)
        manager = self.broker.logs
        while manager.remove_segments(log, plan.start_offset, all_go=plan.rolls_first).has_more:
            continue
        return log.snapshot.log_start_offset

    def clean(self, log: Log, dice: random.Random) -> bool:
        """A run of the cleaner, perhaps given up in between; whether it came to its end."""
        manager = self.broker.logs
        log.roll()
        self.sync(log)
        manager.checkpoint()
        assert learn_ages(log, 1 << 30)
        verdict = verdict_on(log, manager.cleaner_offsets, self.clock.now_ms())
        memory = CleaningMemory(24 * 4096, 0.9, dice.choice((100, 1 << 20)))
        run = Cleaning(log, verdict, memory, Env(self.clock, self.fs, SeededRng(2)))
        patience = dice.choice((1, 2, 3, 4, 5, 100, 100, 100))
        slices = run.slices()
        for part in slices:
            if not patience:
                slices.close()
                manager.bury(log, run.replaced)
                return False
            patience -= 1
            if part.in_turn is not None:
                part.in_turn()
        manager.bury(log, run.replaced)
        manager.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)
        return True
