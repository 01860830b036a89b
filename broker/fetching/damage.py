"""Damage on the way to a consumer: bytes are checked before their first fetch, and never served
when they are not what was written.

The check runs on a lane, since it reads; its fetch is read again afterwards. Refused reads are
counted, logged once a minute for each partition, and kept with the findings of the scrubber.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.runtime.event_log import event
from broker.runtime.lanes import DiskLane
from broker.runtime.probes import BrokerProbes
from broker.runtime.wire_error import wire_error
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError
from storage.files.file_slice import NOTHING, FetchData, Unverified
from storage.log.log import Log

if TYPE_CHECKING:
    from broker.partitions.partition import Partition

TELL_SECONDS = 60.0
MAX_REPORTED = 1000
TASK = "check before serving"


class Unreadable(NamedTuple):
    """A range that could not be verified, and the error of who asks for it."""

    range: Unverified
    error: KafkaError


Done = Callable[[Collection[Unreadable], Collection[Unverified]], None]
"""Gets those that could not be read, and those that are not settled yet."""


def readable_part(
    data: FetchData,
    unreadable: Collection[Unreadable],
    read_first: Callable[[], FetchData | None],
    most_bytes: int | None = None,
) -> FetchData:
    """The data; of a range that could not be read as a whole its first batch, if that has no more
    than `most_bytes`.

    `read_first` reads the batch alone. KafkaError, that of the range, where it is not readable.
    """
    asked = data.unverified
    error = None if asked is None else _error_among(asked, unreadable)
    if error is None:
        return data
    first = read_first()
    if first is None or first.unverified is not None:
        raise error
    return NOTHING if most_bytes is not None and first.size_bytes > most_bytes else first


def is_among(unverified: Unverified, ranges: Collection[Unverified]) -> bool:
    """True when one of the ranges is of the same segment."""
    return any(each.segment is unverified.segment for each in ranges)


def _error_among(asked: Unverified, unreadable: Collection[Unreadable]) -> KafkaError | None:
    return next((each.error for each in unreadable if each.range.segment is asked.segment), None)


class DamageLedger(Protocol):
    """Keeps what was found damaged."""

    def met(self, log: Log, offset: int, what: str) -> None:
        """Bytes of a log, from `offset` on, are not what was written."""


class AwayLane(Protocol):
    """Threads for what comes from the tier's store."""

    @property
    def wait_seconds(self) -> float:
        """For how long a fetch waits for it."""

    def run(self, work: Callable[[], None]) -> asyncio.Future[None]:
        """Runs it there; the future has StoreError at once when too much waits already."""


class DamageMet:
    """Damaged reads that consumers were refused. Used from the event loop."""

    def __init__(
        self,
        lane: DiskLane,
        probes: BrokerProbes,
        ledger: DamageLedger,
        away: AwayLane | None = None,
    ) -> None:
        """Nothing was found yet. Bytes are checked on `lane`, those in a store on `away`."""
        self._lane = lane
        self._away = away
        self._probes = probes
        self._ledger = ledger
        self._under_way: dict[tuple[object, int], asyncio.Future[None]] = {}
        self._reported_at: dict[tuple[str, int], float] = {}

    def settle(self, ranges: Sequence[Unverified], done: Done) -> None:
        """Checks each on its lane; `done` is called on the loop, in the end or when it is late.

        What comes from a store may take its time: it goes on, for who asks again. Of one place one
        check is under way: who asks for it meanwhile gets its end, then reads and perhaps asks
        for more.
        """
        is_away = any(each.is_away for each in ranges)
        patience = self._away.wait_seconds if self._away is not None and is_away else None
        checks = [self._check(each) for each in ranges]

        def settled(_: object) -> None:
            pairs = list(zip(ranges, checks, strict=True))
            late = [each for each, check in pairs if not check.done()]
            ended = ((each, self._error_of(check)) for each, check in pairs if check.done())
            done([Unreadable(each, error) for each, error in ended if error is not None], late)

        waiting = asyncio.ensure_future(asyncio.wait(checks, timeout=patience))
        waiting.add_done_callback(settled)

    def _check(self, each: Unverified) -> asyncio.Future[None]:
        place = each.place
        check = self._under_way.get(place)
        if check is None:
            lane = self._away if each.is_away and self._away is not None else self._lane
            check = self._under_way[place] = lane.run(each.settle)
            check.add_done_callback(partial(self._ended, place))
        return check

    def _ended(self, place: tuple[object, int], check: asyncio.Future[None]) -> None:
        """Looks at its error: one that comes too late for its fetch comes to the next one."""
        self._under_way.pop(place)
        if not check.cancelled():
            check.exception()

    def _error_of(self, check: asyncio.Future[None]) -> KafkaError | None:
        """CORRUPT_MESSAGE for bytes that are lost or changed, another error for other failures."""
        if check.cancelled():
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker stops")
        error = check.exception()
        if error is not None and not isinstance(error, StorageError):
            self._probes.task_failed(TASK)
            event("task_failed", "error", task=TASK, error=repr(error))
        return None if error is None else wire_error(error)

    def met(self, partition: "Partition", offset: int, what: str) -> None:
        """A fetch from `offset` on was refused because of `what`."""
        self._probes.damage_met(partition.topic)
        self._ledger.met(partition.log, offset, what)
        now = self._probes.monotonic()
        key = partition.topic, partition.index
        if now - self._reported_at.get(key, -TELL_SECONDS) < TELL_SECONDS:
            return
        if len(self._reported_at) >= MAX_REPORTED:
            self._reported_at.clear()
        self._reported_at[key] = now
        event("damage_not_served", "error", log=repr(partition), offset=offset, detail=what)
