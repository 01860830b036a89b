"""Compares a start after a crash with the ledger: everything that a client could notice.

Logs by a full scan, readers of committed data through Fetch and its list of aborted transactions,
searches by time against the scan, groups, offsets, settings, quotas and producer ids through the
broker's own answers. Then time passes, open transactions end, and all of it must still agree.
"""

import random
from typing import NamedTuple

from broker.quotas.table import PRODUCER_BYTE_RATE
from protocol.records.batch import HEADER_BYTES
from protocol.records.record import Record
from protocol.records.scan import scan_batches
from storage.files.layout import LOG
from storage.log.log import Log
from tests.support.records.logs import first_from, records_of
from tests.support.worlds.broker_world import EVERY_BROKER, BrokerWorld
from tests.support.worlds.promises import (
    ABORT,
    COMMIT,
    OPEN,
    BrokerLedger,
    PartitionFacts,
    TopicFacts,
    TransactionFacts,
    Written,
)
from tests.support.worlds.share_life import judge_shares
from tests.support.worlds.transaction_world import TIMEOUT_MS

MAGIC_AT = 16
SEARCHES = 3  # by time, of each partition


class Seen(NamedTuple):
    """A record of the ledger that was found."""

    record: Record
    written: Written


async def judge(world: BrokerWorld, ledger: BrokerLedger, dice: random.Random) -> int:
    """AssertionError says what was promised and not kept. `world` has just started.

    The answer is the number of logs that came up read-only, since unsynced bytes in the middle are
    gone and sound ones follow.
    """
    _judge_settings(world, ledger)
    _judge_groups(world, ledger)
    topics = _topics(world, ledger)
    scans = {topic.name: _scanned(world, topic) for topic in topics}
    for topic in topics:
        await _judge_committed_early(world, topic)
    await _judge_producer_ids(world, ledger)
    await world.passes(TIMEOUT_MS + 1)
    await world.rests()
    fates: dict[int, set[bool]] = {}
    for topic in topics:
        for index, seen in enumerate(scans[topic.name]):
            if world.log(topic.name, index).corruption is None:
                await _judge_committed(world, topic, index, seen, fates)
            await _judge_times(world, topic.name, index, dice)
    _judge_offsets(world, ledger, fates)
    _judge_fates(ledger, fates)
    await judge_shares(world, ledger)
    return sum(log.corruption is not None for log in world.logs())


def _judge_settings(world: BrokerWorld, ledger: BrokerLedger) -> None:
    config = world.broker.config
    found = {each.name: each.value for each in config.describe_broker(EVERY_BROKER)}
    assert found in ledger.broker.values, f"broker settings {found}, not {ledger.broker}"
    quotas = {
        str(entity[0][1]): limits[PRODUCER_BYTE_RATE]
        for entity, limits in world.broker.quotas.table.entries.items()
    }
    assert quotas in ledger.quotas.values, f"quotas {quotas}, not {ledger.quotas}"


def _judge_groups(world: BrokerWorld, ledger: BrokerLedger) -> None:
    for group_id, fact in ledger.members.items():
        told = fact.latest
        if told is None or not fact.is_settled:
            continue
        group = world.broker.groups.groups.get(group_id)
        assert group is not None, f"group {group_id} is gone"
        found = group.generation, list(group.members)
        assert found == (told.generation, [told.member_id]), f"group {group_id}: {found}"


def _topics(world: BrokerWorld, ledger: BrokerLedger) -> list[TopicFacts]:
    """The lives that topics have now; their settings are those of that life."""
    living = []
    for name, fact in ledger.topics.items():
        image = world.broker.topics.image.topics.get(name)
        if image is None:
            assert None in fact.values, f"topic {name} is gone"
            continue
        lives = [each for each in fact.values if each is not None]
        life = next((each for each in lives if each.topic_id == image.topic_id), None)
        if life is None:
            assert image.topic_id not in ledger.known_ids, f"topic {name}: an old life came back"
            life = next((each for each in lives if each.topic_id is None), None)
        assert life is not None, f"topic {name} came back"
        assert len(image.partitions) == len(life.partitions), f"topic {name}: partitions"
        settings = world.broker.config.topic_overrides(name)
        assert settings in life.settings.values, f"{name}: settings {settings}, {life.settings}"
        living.append(life)
    letters = set() if ledger.jobs is None else {ledger.jobs.letters}
    unknown = {name for name in world.broker.topics.image.topics if not name.startswith("__")} - (
        ledger.topics.keys() | letters
    )
    assert not unknown, f"topics that nobody made: {unknown}"
    return living


def _scanned(world: BrokerWorld, topic: TopicFacts) -> list[list[Seen]]:
    return [_scan(world, topic, index, facts) for index, facts in enumerate(topic.partitions)]


def _scan(world: BrokerWorld, topic: TopicFacts, index: int, facts: PartitionFacts) -> list[Seen]:
    """All records of a partition are what was sent, and what was promised is among them."""
    log, where = world.log(topic.name, index), f"{topic.name}-{index}"
    if log.corruption is not None:
        assert sound_ones_follow(log), f"{where}: a torn tail is taken for damage: {log.corruption}"
    begin, end = log.snapshot.log_start_offset, log.snapshot.log_end_offset
    assert facts.start <= begin <= facts.start_asked, (
        f"{where}: starts at {begin}, asked for {facts.start} to {facts.start_asked}"
    )
    records = records_of(log)
    offsets = [each.offset for each in records]
    if topic.is_compacted:
        assert offsets == sorted(set(offsets)), f"{where}: records twice, or out of order"
    else:
        assert offsets == list(range(begin, end)), f"{where}: a hole"
    found = []
    for record in records:
        rows = [each for each in facts.sent.get(record.offset, ()) if each.value == record.value]
        if rows:
            found.append(Seen(record, rows[-1]))
        else:
            assert _is_marker(world, topic.name, index, record), (
                f"{where}: offset {record.offset} was never written like that"
            )
    values = [each.written.value for each in found]
    assert len(values) == len(set(values)), f"{where}: a record is there twice"
    _judge_durable(topic, where, facts, begin, {each.record.offset for each in found}, end)
    return found


def sound_ones_follow(log: Log) -> bool:
    """True when a batch is behind the end where the log was found to end."""
    end = log.snapshot.log_end_offset
    for entry in log.files.fs.list_dir(log.files.path):
        if not entry.name.endswith(LOG):
            continue
        data = memoryview(log.files.fs.read_bytes(f"{log.files.path}/{entry.name}"))
        if any(_is_later_batch(data[at:], end) for at in range(len(data) - HEADER_BYTES)):
            return True
    return False


def _judge_durable(  # noqa: PLR0917
    topic: TopicFacts, where: str, facts: PartitionFacts, begin: int, found: set[int], end: int
) -> None:
    durable = facts.durable()
    last = max(durable, default=-1)
    assert end > last or begin > last, (
        f"{where}: offset {end} would be used twice, {last} was promised"
    )
    if not topic.is_compacted:
        lost = [offset for offset in durable if offset >= begin and offset not in found]
        assert not lost, f"{where}: lost offsets {lost}"


def _is_marker(world: BrokerWorld, topic: str, index: int, record: Record) -> bool:
    """Markers have a key of four bytes; the test's own records have other keys."""
    return record.key is not None and len(record.key) == 4 and record.key[:3] == b"\0\0\0"


def _is_later_batch(data: memoryview, end: int) -> bool:
    if data[MAGIC_AT] != 2 or int.from_bytes(data[:8], "big") <= end:
        return False
    return any(row[1] > end for row in scan_batches(data).batches)


async def _judge_committed_early(world: BrokerWorld, topic: TopicFacts) -> None:
    """Nothing of a transaction that was not committed is ever visible."""
    for index, facts in enumerate(topic.partitions):
        owners = _owners(facts)
        if not owners:
            continue
        for value in await world.committed(topic.name, index):
            owner = owners.get(value)
            assert owner is None or COMMIT in owner.outcome.values, (
                f"{topic.name}-{index}: readers of committed data get {value!r} of transaction "
                f"{owner.number}, which is {owner.outcome}"
            )


def _owners(facts: PartitionFacts) -> dict[bytes, TransactionFacts]:
    return {
        each.value: each.transaction
        for rows in facts.sent.values()
        for each in rows
        if each.transaction is not None
    }


async def _judge_committed(
    world: BrokerWorld,
    topic: TopicFacts,
    index: int,
    seen: list[Seen],
    fates: dict[int, set[bool]],
) -> None:
    """Everything has ended: a reader of committed data gets exactly what was committed."""
    where = f"{topic.name}-{index}"
    snapshot = world.log(topic.name, index).snapshot
    assert snapshot.last_stable_offset == snapshot.high_watermark, f"{where}: readers wait for ever"
    visible = await world.committed(topic.name, index)
    readable = set(visible)
    for _, written in seen:
        if written.transaction is None:
            assert written.value in readable, f"{where}: {written.value!r} is hidden"
        elif not topic.is_compacted or written.value in readable:
            fates.setdefault(written.transaction.number, set()).add(written.value in readable)
    if topic.is_compacted:
        _judge_latest(where, topic.partitions[index], readable)


def _judge_latest(where: str, facts: PartitionFacts, readable: set[bytes]) -> None:
    """Of each key the last committed record is there, or a later one."""
    sure: dict[bytes | None, int] = {}
    for offset, row in sorted(facts.durable().items()):
        owner = row.transaction
        if owner is None or (owner.outcome.is_settled and owner.outcome.latest == COMMIT):
            sure[row.key] = offset
    for key, offset in sure.items():
        later = [
            each.value
            for at, rows in facts.sent.items()
            for each in rows
            if at >= offset and each.key == key
        ]
        assert readable & set(later), f"{where}: the last record of {key!r} ({offset}) is lost"


def _judge_fates(ledger: BrokerLedger, fates: dict[int, set[bool]]) -> None:
    for transaction in ledger.transactions:
        fate = fates.get(transaction.number)
        if fate is None:
            continue
        named = f"transaction {transaction.number}, {transaction.outcome}"
        assert len(fate) == 1, f"{named}: a part of it is visible"
        possible = {each == COMMIT for each in transaction.outcome.values}
        assert fate <= possible, f"{named}: {'visible' if True in fate else 'hidden'}"


def _judge_offsets(world: BrokerWorld, ledger: BrokerLedger, fates: dict[int, set[bool]]) -> None:
    groups = {group for group, _, _ in ledger.offsets}
    found = {
        (group, *place): offset
        for group in groups
        for place, offset in world.offsets(group).items()
    }
    for place, fact in ledger.offsets.items():
        assert found.get(place) in fact.values, f"offset of {place}: {found.get(place)}, not {fact}"
    assert found.keys() <= ledger.offsets.keys(), "offsets that nobody committed"
    for transaction in ledger.transactions:
        if transaction.outcome.is_settled or transaction.outcome.latest == OPEN:
            continue
        for place, offset in transaction.offsets.items():
            if transaction.outcome.latest == ABORT:
                assert found.get(place) != offset, f"an aborted offset of {place} counts"
            elif ledger.offsets[place].latest == offset:
                fates.setdefault(transaction.number, set()).add(found.get(place) == offset)


async def _judge_times(world: BrokerWorld, topic: str, index: int, dice: random.Random) -> None:
    """Each answer by time is that of a full scan."""
    records = [(each.timestamp, each.offset) for each in records_of(world.log(topic, index))]
    for at, _ in dice.sample(records, min(SEARCHES, len(records))):
        wanted = at + dice.choice((-1, 0, 0, 1))
        expected = first_from(records, wanted)
        found = await world.offset_at(topic, index, wanted, dice.randrange(2))
        assert found == (expected or (-1, -1)), (
            f"{topic}-{index}: the search for {wanted} finds {found}, the scan {expected}"
        )


async def _judge_producer_ids(world: BrokerWorld, ledger: BrokerLedger) -> None:
    made = await world.new_producer_id()
    assert made not in ledger.producer_ids, f"producer id {made} is given out twice"
