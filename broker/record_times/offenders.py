"""Clients that sent records with bad times: all records counted, each client listed (time.md 2).

Counters are exact and never forget. The list of
clients is bounded: of the entries not updated for longest the one with the fewest records is
evicted, and evictions are counted. It lives in
memory and ends with the process. One log event an entry when it is new, then at most one a minute
with the number of records not logged since; `broker.runtime.event_log` bounds the lines of all
together. Used from the event loop only, but for `entries`, `report` and `who`, which copy first.
"""

from collections import OrderedDict
from dataclasses import asdict, dataclass
from itertools import islice
from typing import NamedTuple

from broker.partitions.partition_services import Sender
from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes
from storage.env import Clock
from storage.log.log import Log
from storage.timestamps import Direction
from storage.validation.dirty_timestamps import Action, DirtyFinding, DirtyTimes

MAX_ENTRIES = 1000
MAX_CLIENT_ID = 256  # characters of a client id that are kept
CANDIDATES = 32  # entries that are compared when one has to go
LOGGED_EVERY_MS = 60_000
NOT_STORED = frozenset({Action.REJECTED, Action.QUARANTINED})


class OffenderKey(NamedTuple):
    """Key of an entry: a client, a partition, and the fault."""

    client_id: str
    principal: str
    address: str
    topic: str
    partition: int
    direction: str
    reason: str
    action: str


@dataclass(slots=True)
class OffenderStats:
    """Facts about an offender. Times in ms; offsets are None where nothing was stored.

    `worst_skew_ms` is arrival minus record time: negative for times ahead of the clock.
    """

    count: int
    first_offset: int | None
    last_offset: int | None
    worst_offset: int | None
    worst_timestamp_ms: int
    worst_skew_ms: int
    first_seen_ms: int
    last_seen_ms: int
    logged_ms: int
    unlogged: int = 0


class DirtyClients:
    """The clients with bad clocks, most recently heard of last."""

    def __init__(self, clock: Clock, probes: BrokerProbes) -> None:
        """Nobody is guilty yet."""
        self.forgotten_entries: int = 0
        self.forgotten_records = 0
        self._clock = clock
        self._probes = probes
        self._entries: OrderedDict[OffenderKey, OffenderStats] = OrderedDict()

    def found(self, log: Log, dirty: DirtyTimes, base_offset: int | None, sender: Sender) -> None:
        """A batch had bad times; `base_offset` is where it was stored, None if it was refused."""
        client_id, address = sender.client_id[:MAX_CLIENT_ID], sender.client_host
        principal = str(sender.principal)
        for finding in dirty.findings:
            direction, reason, action = finding.direction, finding.reason, finding.action
            self._probes.dirty_timestamps(log.topic, direction, reason, action, finding.count)
            guilt = OffenderKey(
                client_id, principal, address, log.topic, log.partition, direction, reason, action
            )
            evidence = self._note(guilt, finding, dirty.arrival_ms, base_offset)
            if direction is not Direction.NONE:
                self._tell(guilt, evidence, finding.count)

    def topic_deleted(self, topic: str) -> None:
        """Its entries go."""
        for guilt in [guilt for guilt in self._entries if guilt.topic == topic]:
            del self._entries[guilt]

    def report(self, limit: int | None = None) -> dict[str, object]:
        """All entries as JSON has them, most records first, and how much was forgotten."""
        entries = sorted(self.entries(), key=lambda entry: -entry[1].count)
        return {
            "clients": [_as_json(*entry) for entry in entries[:limit]],
            "forgotten_entries": self.forgotten_entries,
            "forgotten_records": self.forgotten_records,
        }

    def who(
        self, topic: str, partition: int, first_offset: int, last_offset: int
    ) -> list[dict[str, object]]:
        """Clients that wrote records with bad times there, as far as known; the worst skew first.

        An entry counts when its offsets, from the first to the last seen, overlap those asked for.
        """
        found = [
            (guilt, evidence)
            for guilt, evidence in self.entries()
            if guilt.topic == topic
            and guilt.partition == partition
            and evidence.first_offset is not None
            and evidence.last_offset is not None
            and evidence.first_offset <= last_offset
            and evidence.last_offset >= first_offset
        ]
        found.sort(key=lambda entry: -abs(entry[1].worst_skew_ms))
        return [_as_json(*entry) for entry in found]

    def entries(self) -> list[tuple[OffenderKey, OffenderStats]]:
        """All that is known, longest not heard of first: a copy, for any thread."""
        return list(self._entries.copy().items())

    def _note(
        self, guilt: OffenderKey, finding: DirtyFinding, now_ms: int, base_offset: int | None
    ) -> OffenderStats:
        entries = self._entries
        if guilt.action in NOT_STORED:
            base_offset = None
        evidence = entries.get(guilt)
        if evidence is None:
            if len(entries) >= MAX_ENTRIES:
                self._forget_one()
            evidence = entries[guilt] = OffenderStats(
                0, None, None, None, 0, 0, now_ms, now_ms, now_ms - LOGGED_EVERY_MS
            )
        else:
            entries.move_to_end(guilt)
        _add(evidence, finding, now_ms, base_offset)
        return evidence

    def _forget_one(self) -> None:
        oldest = islice(self._entries.items(), CANDIDATES)
        guilt, evidence = min(oldest, key=lambda entry: entry[1].count)
        del self._entries[guilt]
        self.forgotten_entries += 1
        self.forgotten_records += evidence.count

    def _tell(self, guilt: OffenderKey, evidence: OffenderStats, count: int) -> None:
        now_ms = self._clock.now_ms()
        if abs(now_ms - evidence.logged_ms) < LOGGED_EVERY_MS:
            evidence.unlogged += count
            return
        unlogged = {"untold_records": evidence.unlogged} if evidence.unlogged else {}
        evidence.logged_ms, evidence.unlogged = now_ms, 0
        event(
            "dirty_timestamps", "warning",
            **guilt._asdict(), records=count, **unlogged,
            worst_skew_seconds=evidence.worst_skew_ms / 1000, last_offset=evidence.last_offset,
        )  # fmt: skip


def _add(
    evidence: OffenderStats, finding: DirtyFinding, now_ms: int, base_offset: int | None
) -> None:
    skew_ms = now_ms - finding.worst_ms
    is_worst = not evidence.count or abs(skew_ms) > abs(evidence.worst_skew_ms)
    if is_worst:
        evidence.worst_timestamp_ms, evidence.worst_skew_ms = finding.worst_ms, skew_ms
    if base_offset is not None:
        if evidence.first_offset is None:
            evidence.first_offset = base_offset + finding.first
        evidence.last_offset = base_offset + finding.last
        if is_worst:
            evidence.worst_offset = base_offset + finding.worst_at
    evidence.count += finding.count
    evidence.last_seen_ms = now_ms


def _as_json(guilt: OffenderKey, evidence: OffenderStats) -> dict[str, object]:
    known = asdict(evidence)
    del known["logged_ms"], known["unlogged"]
    return {**guilt._asdict(), **known}
