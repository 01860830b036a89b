"""Answers for clients that know formats 0 and 1 only (Fetch 0 to 3): batches become messages.

The plan has read slices of files as for everybody; here a lane converts them, a bounded step at a
time, one partition after the other, so that other work of the lane and the loop comes in between.
What an answer takes is bounded: after `MOST_BYTES` of records or `MOST_SECONDS` it has what there
is, and the client asks for the rest. What it holds is in the account of memory until it goes out.
Where a slice holds markers of transactions only, which old formats lack, reading goes on behind it.
"""

import asyncio
from collections.abc import Collection
from functools import partial
from typing import Protocol

from broker.fetching.damage import DamageMet, Unreadable
from broker.fetching.plan import FetchPlan
from broker.partitions.fetch_waiters import FetchWaiters
from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.memory_account import MemoryAccount, MemoryClass
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.unpacking import REQUEST_BYTES
from broker.runtime.wire_error import wire_error
from broker.topics.topic_catalog import TopicCatalog
from protocol.apis.fetch import FetchResponse, PartitionData
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock
from storage.errors import StorageError
from storage.files.file_slice import FileSlice, Unverified
from storage.old_formats.down_conversion import OldReader, Oversize

MOST_BYTES, MOST_SECONDS = REQUEST_BYTES, 1.0
FORMAT_1_SINCE_VERSION = 2
WHOLE_FIRST_SINCE_VERSION = 3
FORMAT_2_SINCE_VERSION = 4


class ConversionServices(Protocol):
    """The services that an answer is converted with."""

    @property
    def topics(self) -> TopicCatalog:
        """The catalog of the partitions."""

    @property
    def clock(self) -> Clock:
        """The clock of deadlines."""

    @property
    def memory(self) -> MemoryAccount:
        """The account that converted records are charged to."""

    @property
    def probes(self) -> BrokerProbes:
        """The counters."""

    @property
    def waiters(self) -> FetchWaiters:
        """Fetches that wait for records."""

    @property
    def damage(self) -> DamageMet:
        """Checks of bytes before they are served."""


class OldFetch:
    """One request of an old client, whose answer is being converted."""

    __slots__ = (
        "_context",
        "_deadline",
        "_ends",
        "_has_given",
        "_held_bytes",
        "_plan",
        "_room",
        "_unpacked_bytes",
    )

    def __init__(
        self, plan: FetchPlan, deadline: float, context: RequestContext[ConversionServices]
    ) -> None:
        """`deadline` (monotonic) is when the client wants an answer even without records."""
        self._plan = plan
        self._deadline = deadline
        self._context = context
        self._room = plan.max_bytes
        self._has_given = False
        self._ends = 0.0
        self._unpacked_bytes = 0
        self._held_bytes = 0

    def convert(self, response: FetchResponse | Deferred[FetchResponse]) -> Deferred[FetchResponse]:
        """The response with messages in place of batches."""
        answer: Deferred[FetchResponse] = Deferred()
        task = asyncio.get_running_loop().create_task(self._settle(answer, response))
        answer.when_abandoned(partial(_cancel, task))
        if isinstance(response, Deferred):
            answer.when_hurried(response.hurry)
        return answer

    async def _settle(
        self, answer: Deferred[FetchResponse], response: FetchResponse | Deferred[FetchResponse]
    ) -> None:
        try:
            answer.resolve(await self._converted(response))
        except asyncio.CancelledError:
            if isinstance(response, Deferred):
                response.abandon()
        except Exception as error:  # noqa: BLE001 - handed on
            answer.fail(error)
        finally:
            self._context.services.memory.release(MemoryClass.ANSWERS, self._held_bytes)

    async def _converted(self, response: FetchResponse | Deferred[FetchResponse]) -> FetchResponse:
        if isinstance(response, Deferred):
            response = await wait_for(response)
        asked = {(each.topic, each.index): each for each in self._plan.wanted}
        answers = {
            (topic.topic, data.partition_index): data
            for topic in response.responses
            for data in topic.partitions
        }
        had_records = any(data.records for data in answers.values())
        watched = []
        self._ends = self._context.services.probes.monotonic() + MOST_SECONDS
        for place, data in answers.items():
            if data.error_code or not data.records:
                continue
            wanted = asked[place]
            try:
                partition = self._context.services.topics.image.require(*place)
                watched.append(partition)
                await self._convert_partition(
                    partition, data, wanted.fetch_offset, wanted.max_bytes
                )
            except (KafkaError, StorageError) as fault:
                error = wire_error(fault)
                if error.code == ErrorCode.CORRUPT_MESSAGE:
                    damage = self._context.services.damage
                    damage.met(watched[-1], wanted.fetch_offset, error.message)
                self._refuse(data, error)
        if had_records and not any(data.records or data.error_code for data in answers.values()):
            await self._wait(watched)
        return response

    async def _convert_partition(
        self, partition: Partition, data: PartitionData, offset: int, max_bytes: int
    ) -> None:
        if partition.log.config.compression_type == "zstd":
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Fetch 10 or later")
        if not partition.log.config.message_downconversion_enable:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION, "message.downconversion.enable is false"
            )
        version = self._context.api_version
        part: FileSlice | None = data.records
        data.records = b""
        room = min(max_bytes, self._room)
        if self._has_given and (room <= 0 or self._is_spent()):
            return
        oversize = Oversize.NOTHING if self._has_given else Oversize.WHOLE
        if version < WHOLE_FIRST_SINCE_VERSION and room == max_bytes:
            oversize = Oversize.CUT
        while part is not None and not data.records:
            reader = OldReader(
                part,
                1 if version >= FORMAT_1_SINCE_VERSION else 0,
                from_offset=offset,
                room=room,
                oversize=oversize,
                limit_bytes=partition.log.config.max_decompressed_message_bytes,
            )
            await self._go_through(reader, partition)
            if not self._give(data, reader.messages):
                return
            if not data.records:
                part = await self._behind(partition, offset, reader.next_offset, max_bytes)
                offset = reader.next_offset
        self._room -= len(data.records)
        self._has_given = self._has_given or bool(data.records)

    async def _behind(
        self, partition: Partition, offset: int, next_offset: int, max_bytes: int
    ) -> FileSlice | None:
        """The slice after one that gave nothing, once its bytes are checked.

        None at the end of what consumers may see, and where that takes longer than an answer may.
        """
        while next_offset > offset:
            found = partition.read(next_offset, max_bytes, committed=False, whole_first=True)
            if found is None or found.unverified is None:
                return found.slices[0] if found is not None and found.slices else None
            if self._is_spent() or not await self._is_checked(found.unverified):
                break
        return None

    async def _is_checked(self, unverified: Unverified) -> bool:
        """False while the tier's store is slow: what it gives is there for who asks again."""
        checked: Deferred[bool] = Deferred()

        def settled(unreadable: Collection[Unreadable], late: Collection[Unverified]) -> None:
            if unreadable:
                (failed,) = unreadable
                checked.fail(failed.error)
            else:
                checked.resolve(not late)

        self._context.services.damage.settle([unverified], settled)
        return await wait_for(checked)

    async def _go_through(self, reader: OldReader, partition: Partition) -> None:
        """Up to the end of its slice, or of what an answer may take."""
        while not reader.is_done:
            before = reader.unpacked_bytes
            await wait_for(partition.alone_on_lane(reader.step, self._context.budget))
            self._unpacked_bytes += reader.unpacked_bytes - before
            if reader.messages and self._is_spent():
                return

    def _is_spent(self) -> bool:
        is_late = self._context.services.probes.monotonic() >= self._ends
        return is_late or self._unpacked_bytes >= MOST_BYTES

    def _give(self, data: PartitionData, messages: bytearray) -> bool:
        """False when memory for answers is used up: it is counted, and the client asks again."""
        try:
            self._context.services.memory.charge(MemoryClass.ANSWERS, len(messages))
        except KafkaError:
            return False
        self._held_bytes += len(messages)
        data.records = messages
        return True

    def _refuse(self, data: PartitionData, error: KafkaError) -> None:
        self._context.count_error(error.code)
        data.error_code = known_to_old_clients(error.code)
        data.high_watermark = -1
        data.records = b""

    async def _wait(self, watched: list[Partition]) -> None:
        """Nothing for this client: it would ask again at once, so it waits as it said it would."""
        services = self._context.services
        woken: Deferred[None] = Deferred()
        remaining_ms = int((self._deadline - services.clock.monotonic()) * 1000)
        if remaining_ms <= 0:
            return
        began = services.probes.monotonic()
        waiter = services.waiters.register(watched, 1, remaining_ms, lambda: woken.resolve(None))
        try:
            await wait_for(woken)
        finally:
            services.waiters.cancel(waiter)
            self._context.waited_seconds += services.probes.monotonic() - began


def known_to_old_clients(code: int) -> int:
    """The code in place of one that came with Fetch 6."""
    storage_error = code == ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if storage_error else code


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
