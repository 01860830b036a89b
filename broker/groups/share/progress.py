"""Progress of share groups in partitions: what is finished, and how much is left.

On one node all of it is at hand; in a fleet the states and the ends of partitions are of other
nodes, which are asked before an answer is made.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import NamedTuple, Protocol

from broker.groups.ends_elsewhere import Ends
from broker.groups.share.persister import UNINITIALIZED, SharePersister, StateSummary
from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import wait_for
from broker.share.state.key import ShareKey
from protocol.errors import ErrorCode, KafkaError

UNKNOWN_LAG = -1
MOST_ASKED = 10_000
"""Share partitions of one answer whose states other nodes may have."""


class SharePlace(NamedTuple):
    """A share partition, and the partition that it is of."""

    key: ShareKey
    partition: Partition


class ShareProgress(NamedTuple):
    """Progress in one partition."""

    summary: StateSummary
    end: int | None
    """High watermark; None while that is not known."""

    @property
    def lag(self) -> int:
        """Records from the start on that are not finished; -1 while that is not known."""
        start, finished = self.summary.start_offset, self.summary.delivery_complete_count
        if self.end is None or UNINITIALIZED in {start, finished}:
            return UNKNOWN_LAG
        return self.end - start - finished


class ProgressLook(Protocol):
    """One look at some share partitions."""

    def of(self, place: SharePlace) -> ShareProgress:
        """The progress. KafkaError when it cannot be read; POLICY_VIOLATION (44) beyond those that
        are looked at for one answer.
        """


class ProgressService(Protocol):
    """Makes looks."""

    @property
    def at_hand(self) -> ProgressLook | None:
        """A look at any places; None where other nodes have to be `asked` first."""

    async def asked(self, places: Iterable[SharePlace]) -> ProgressLook:
        """A look at these, and no others."""


class LocalProgress:
    """The `ProgressService` of a broker that stands alone: it is the look, too."""

    def __init__(self, persister: SharePersister) -> None:
        """Nothing is read."""
        self._persister = persister

    @property
    def at_hand(self) -> ProgressLook:
        """As the port has it."""
        return self

    async def asked(self, _: object) -> ProgressLook:
        """As the port has it."""
        return self

    def of(self, place: SharePlace) -> ShareProgress:
        """As the port has it."""
        summary = self._persister.summary(*place.key)
        assert not isinstance(summary, Deferred)
        return ShareProgress(summary, place.partition.log.snapshot.high_watermark)


class FleetProgress:
    """The `ProgressService` of a node of a fleet."""

    def __init__(self, persister: SharePersister, ends: Ends) -> None:
        """Nobody is asked."""
        self._persister = persister
        self._ends = ends

    @property
    def at_hand(self) -> None:
        """As the port has it."""

    async def asked(self, places: Iterable[SharePlace]) -> ProgressLook:
        """As the port has it."""
        wanted = list(islice(places, MOST_ASKED))
        asked = [(each.key, self._summary(each.key)) for each in wanted]
        found = {key: await _outcome(summary) for key, summary in asked}
        return _AskedLook(found, await self._ends([each.partition for each in wanted]))

    def _summary(self, key: ShareKey) -> Deferred[StateSummary]:
        summary = self._persister.summary(*key)
        return summary if isinstance(summary, Deferred) else resolved(summary)


class _AskedLook(NamedTuple):
    summaries: Mapping[ShareKey, StateSummary | KafkaError]
    ends: Mapping[Partition, int]

    def of(self, place: SharePlace) -> ShareProgress:
        """As the port has it."""
        found = self.summaries.get(place.key)
        if found is None:
            text = f"More than {MOST_ASKED} share partitions: ask for less at once"
            raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
        if isinstance(found, KafkaError):
            raise found
        return ShareProgress(found, self.ends.get(place.partition))


async def _outcome(summary: Deferred[StateSummary]) -> StateSummary | KafkaError:
    try:
        return await wait_for(summary)
    except KafkaError as error:
        return error
