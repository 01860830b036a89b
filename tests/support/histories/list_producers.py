"""State of idempotent producers in a log, as lists (semantics.md 10)."""

from typing import NamedTuple

from storage.producers.producer_state import ProducerEntry

REMEMBERED = 5
SEQUENCES = 2**31
DAY_MS = 86_400_000
OUT_OF_ORDER, FENCED = 45, 47


class Sent(NamedTuple):
    """One batch of a producer: its first sequence, its records, its place, its time."""

    first: int
    records: int
    base_offset: int
    newest: int

    @property
    def following(self) -> int:
        """The sequence after it."""
        return (self.first + self.records) % SEQUENCES


class ListProducers:
    """All of them."""

    def __init__(self) -> None:
        self.sent: dict[int, list[tuple[int, Sent]]] = {}
        """All that a producer ever stored, with the epochs."""
        self.known: dict[int, list[tuple[int, Sent]]] = {}
        """Batches of each producer."""

    def judge(self, identity: tuple[int, int, int], count: int) -> Sent | int | None:
        """The batch that this one repeats, the error code that refuses it, or None."""
        producer_id, epoch, first = identity
        known = self.known.get(producer_id)
        if known is None:
            return None
        last_epoch, last = known[-1]
        if epoch != last_epoch:
            return FENCED if epoch < last_epoch else OUT_OF_ORDER if first else None
        if first == last.following:
            return None
        for _, batch in known:
            if (batch.first, batch.records) == (first, count):
                return batch
        return OUT_OF_ORDER

    def store(self, identity: tuple[int, int, int], batch: Sent) -> None:
        """Stores a batch of the log."""
        producer_id, epoch, _ = identity
        self.sent.setdefault(producer_id, []).append((epoch, batch))
        known = [each for each in self.known.get(producer_id, []) if each[0] == epoch]
        self.known[producer_id] = [*known, (epoch, batch)][-REMEMBERED:]

    def cut_to(self, end: int) -> None:
        """A power cut took all from `end` on."""
        for producer_id, sent in list(self.sent.items()):
            self.sent[producer_id] = [each for each in sent if each[1].base_offset < end]
            if not self.sent[producer_id]:
                del self.sent[producer_id]

    def learn(self, found: dict[int, ProducerEntry], start: int, now_ms: int) -> None:
        """After a start: how many batches are known is left to the log, but no lie is.

        A snapshot holds a producer's last batch only. A producer may be forgotten when its last
        time is a day old, or when its records are deleted.
        """
        assert found.keys() <= self.sent.keys(), "a producer that never was"
        before, self.known = self.known, {}
        for producer_id, sent in self.sent.items():
            entry, (epoch, last) = found.get(producer_id), sent[-1]
            if entry is None:
                is_old = now_ms - last.newest >= DAY_MS or last.base_offset < start
                assert is_old or producer_id not in before, f"producer {producer_id} is forgotten"
                continue
            remembered = [
                (entry.epoch, Sent(b.base_sequence, b.offset_delta + 1, b.base_offset, b.timestamp))
                for b in entry.batches
            ]
            known = [each for each in sent if each[0] == epoch][-len(remembered) :]
            assert remembered == known, f"producer {producer_id}: {remembered}, sent {known}"
            self.known[producer_id] = known
