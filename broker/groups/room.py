"""Room for what groups keep: in memory, in number, and in one record of their topic."""

from typing import TYPE_CHECKING

from broker.groups.classic.group import Group
from broker.groups.classic.members import Footprint
from broker.groups.commits import Commits, Growth
from broker.groups.pending import PendingOffsets
from broker.runtime.memory_account import MemoryClass
from broker.state.state_topic import StateTopic
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.runtime.memory_account import MemoryAccount
    from config.broker import BrokerConfig

MOST_OF_ONE_GROUP = 0.25  # of the memory for committed offsets


class GroupRoom:
    """Limits on what clients have a coordinator keep."""

    def __init__(
        self,
        settings: "BrokerConfig",
        memory: "MemoryAccount",
        members: Footprint,
        offsets: tuple[Commits, PendingOffsets],
        topic: StateTopic,
    ) -> None:
        """`members` and `offsets` say what there is of them."""
        self._settings = settings
        self._memory = memory
        self._members = members
        self._commits, self._pending = offsets
        self._topic = topic
        memory.watch(MemoryClass.GROUPS, lambda: members.total_bytes)
        memory.watch(MemoryClass.OFFSETS, lambda: sum(self._offset_bytes()))

    def _offset_bytes(self) -> tuple[int, int]:
        return self._commits.stored_bytes, self._pending.size_bytes

    def check_members(self, size_bytes: int) -> None:
        """Room for what one more member says of itself, or GROUP_MAX_SIZE_REACHED (81)."""
        limit, memory = self._settings.horolog_group_members_max_bytes, self._memory
        if not memory.has_room(MemoryClass.GROUPS, size_bytes):
            raise memory.refuse(MemoryClass.GROUPS, size_bytes)
        if self._members.total_bytes + size_bytes > limit:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The metadata of all members would take more than {limit} bytes "
                "(horolog.group.members.max.bytes)",
            )

    def check_subscription(self, growth: int, stored_bytes: int) -> None:
        """Room in memory for what a subscription takes more, and in a record for all of it.

        GROUP_MAX_SIZE_REACHED (81), or INVALID_REQUEST (42).
        """
        if growth > 0:
            self.check_members(growth)
        limit = self._topic.batch_bytes // 2
        if stored_bytes > limit:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A subscription of {stored_bytes} bytes is larger than {limit}: half "
                "of max.message.bytes of __consumer_offsets",
            )

    def check_offsets(self, group: Group, growth: Growth) -> None:
        """Room for what offsets take more: INVALID_COMMIT_OFFSET_SIZE (28)."""
        more, size_bytes = growth
        if more:
            self._check_count(more)
        if size_bytes <= 0:
            return
        memory = self._memory
        if not memory.has_room(MemoryClass.OFFSETS, size_bytes):
            raise memory.refuse(MemoryClass.OFFSETS, size_bytes)
        most = int(memory.share(MemoryClass.OFFSETS) * MOST_OF_ONE_GROUP)
        if group.offset_bytes and group.offset_bytes + size_bytes > most:
            raise memory.refuse(MemoryClass.OFFSETS, size_bytes)

    def _check_count(self, more: int) -> None:
        stored, limit = self._commits.stored, self._settings.horolog_max_committed_offsets
        if stored + len(self._pending) + more > limit:
            raise KafkaError(
                ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
                f"There are {stored} committed offsets: "
                f"horolog.max.committed.offsets allows {limit}",
            )
