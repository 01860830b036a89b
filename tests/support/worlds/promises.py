"""Requests to a broker and its answers: the ledger that a start is compared with.

It is kept outside of what is tested. Between the asking and the answer both the old and the new may
be found after a crash; after the answer only the new.
"""

from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

T = TypeVar("T")

OPEN, COMMIT, ABORT = "open", "commit", "abort"


class Fact(Generic[T]):
    """One thing that has one value: what was answered last, or what was asked for since."""

    def __init__(self, value: T) -> None:
        self.values = [value]

    def __repr__(self) -> str:
        return " or ".join(map(str, self.values))

    @property
    def latest(self) -> T:
        """The last requested value, answered or not."""
        return self.values[-1]

    @property
    def is_settled(self) -> bool:
        """True when only one value is possible."""
        return len(self.values) == 1

    def ask(self, value: T) -> None:
        """From now on this is possible, too."""
        self.values.append(value)

    def answered(self) -> None:
        """Notes that the last request was answered: its value is promised."""
        del self.values[:-1]

    def refused(self) -> None:
        """Notes that the last request was refused: its value may be there after a crash, or may
        not.
        """
        self.values.insert(0, self.values.pop())


@dataclass(slots=True)
class TransactionFacts:
    """One transaction; its records and offsets appear together or not at all."""

    number: int
    outcome: Fact[str] = field(default_factory=lambda: Fact(OPEN))
    offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """Its commits: offsets by group, topic and partition."""


@dataclass(slots=True)
class Written:
    """One record that was sent; its value occurs once."""

    key: bytes | None
    value: bytes
    at: int
    transaction: TransactionFacts | None
    is_durable: bool = False
    is_refused: bool = False
    """It may be there all the same; what is promised of its offset does not mean it."""


@dataclass(slots=True)
class PartitionFacts:
    """Writes of a partition."""

    sent: dict[int, list[Written]] = field(default_factory=dict)
    """By offset: more than one where the first were lost with the power."""
    start: int = 0
    """The log start that was promised."""
    start_asked: int = 0
    """The largest log start that anything may have caused."""

    def durable(self) -> dict[int, Written]:
        """Records acknowledged as durable, by offset."""
        return {
            offset: rows[-1] for offset, rows in self.sent.items() if rows and rows[-1].is_durable
        }

    def became_durable(self, end: int) -> None:
        """Everything below `end` is on the disk: it was acknowledged, or synced."""
        for offset, rows in self.sent.items():
            if offset < end and rows and not rows[-1].is_refused:
                rows[-1].is_durable = True


@dataclass(slots=True)
class TopicFacts:
    """One life of a topic: when it is made again under its name, another begins."""

    name: str
    partitions: list[PartitionFacts]
    settings: Fact[dict[str, str]]
    is_compacted: bool = False
    topic_id: UUID | None = None
    """Known with the answer."""


@dataclass(slots=True)
class Membership:
    """The generation of a group, as its member knows it."""

    generation: int
    member_id: str


@dataclass(slots=True)
class ShareFacts:
    """Fates of the records of one partition for one share group."""

    begun: Fact[bool] = field(default_factory=lambda: Fact(False))
    """True once its state was made."""
    finished: dict[int, Fact[bool]] = field(default_factory=dict)
    """By offset: True for what is never to be delivered again."""
    accepted: set[int] = field(default_factory=set)
    """Offsets that were accepted, answered or not."""
    given_up: set[int] = field(default_factory=set)
    """Offsets that were rejected, or delivered for the last time: they may have dead letters."""

    def of(self, offset: int) -> Fact[bool]:
        """The fate of a record; whoever is not named is to be delivered."""
        return self.finished.setdefault(offset, Fact(False))


class LogEnd(NamedTuple):
    """The end of a log at a time (ms): what is written later arrives later."""

    end_offset: int
    at_ms: int


@dataclass(slots=True)
class Jobs:
    """A share group that gets records some time after they arrived, and wants dead letters."""

    delay_ms: int
    letters: str
    """The topic of its letters, which is in no ledger."""
    is_set: bool = False
    """True once topic and settings were answered."""
    seen: dict[tuple[UUID, int], list[LogEnd]] = field(default_factory=dict)

    def not_before(self, place: tuple[UUID, int], offset: int) -> int:
        """No record with this offset is due before this time (ms)."""
        times = [each.at_ms for each in self.seen.get(place, ()) if each.end_offset <= offset]
        return max(times, default=0) + self.delay_ms


@dataclass(slots=True)
class BrokerLedger:
    """All that was asked and answered."""

    topics: dict[str, Fact[TopicFacts | None]] = field(default_factory=dict)
    known_ids: set[UUID] = field(default_factory=set)
    """Of all lives of topics that were answered."""
    broker: Fact[dict[str, str]] = field(default_factory=lambda: Fact({}))
    """Settings of all brokers."""
    quotas: Fact[dict[str, float]] = field(default_factory=lambda: Fact({}))
    """Bytes a second, by user."""
    offsets: dict[tuple[str, str, int], Fact[int | None]] = field(default_factory=dict)
    """By group, topic and partition; None: nothing is committed."""
    members: dict[str, Fact[Membership | None]] = field(default_factory=dict)
    """By group; None: whatever it is."""
    shares: dict[tuple[UUID, int], ShareFacts] = field(default_factory=dict)
    """Of the one share group, by topic id and partition."""
    jobs: Jobs | None = None
    """Set where that group has a delay and dead letters."""
    producer_ids: set[int] = field(default_factory=set)
    transactions: list[TransactionFacts] = field(default_factory=list)

    def living(self, *, compacted: bool | None = None) -> list[TopicFacts]:
        """Topics that exist for sure."""
        return [
            fact.latest
            for fact in self.topics.values()
            if fact.is_settled
            and fact.latest is not None
            and compacted in {None, fact.latest.is_compacted}
        ]

    def offset(self, group: str, topic: str, partition: int) -> Fact[int | None]:
        """Committed offset of a group."""
        return self.offsets.setdefault((group, topic, partition), Fact(None))
