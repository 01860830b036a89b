"""Lives of a broker, each driven by one seed: what is asked, in which order, with what between."""

import asyncio
from collections.abc import Awaitable, Callable

from tests.support.worlds.broker_life import BrokenPromiseError, BrokerLife, outcome_of
from tests.support.worlds.promises import TopicFacts
from tests.support.worlds.share_life import make_jobs, note_ends, share, shorten

LONGEST_SECONDS = 300  # of one life: what waits for ever is found, too

Step = Callable[[BrokerLife], Awaitable[None]]


async def _create_or_delete(life: BrokerLife) -> None:
    """Topics come, go and come again under their name."""
    name = life.dice.choice(("a", "b"))
    fact = life.ledger.topics.get(name)
    exists = fact is not None and fact.latest is not None
    if exists:
        await life.delete(name)
    if not exists or life.dice.random() < 0.7:
        settings = life.dice.choice(({}, {"retention.bytes": "900"}))
        await life.create(name, **settings)
        await _write_to(life, name)


async def _write_to(life: BrokerLife, name: str) -> None:
    topic = life.ledger.topics[name].latest
    if topic is None:
        return
    for _ in range(life.dice.randint(0, 4)):
        await life.write(topic, acks=life.dice.choice((1, -1)))


async def _write(life: BrokerLife) -> None:
    for _ in range(life.dice.randint(1, 4)):
        await life.write(_any(life), acks=life.dice.choice((1, -1)))


async def _sync(life: BrokerLife) -> None:
    await life.sync(_any(life))


async def _transact(life: BrokerLife) -> None:
    await life.transact(life.ledger.living(), ends=outcome_of(life.dice))


async def _offsets(life: BrokerLife) -> None:
    await life.commit_offset("h", _any(life), life.dice.randrange(1000))


async def _join(life: BrokerLife) -> None:
    await life.join_group("c")


async def _settings(life: BrokerLife) -> None:
    value = str(life.dice.randrange(5, 500))
    match life.dice.randrange(3):
        case 0:
            await life.alter(_any(life), "index.interval.bytes", value)
        case 1:
            await life.alter_broker("log.cleaner.backoff.ms", value)
        case 2:
            await life.set_quota(life.dice.choice("uv"), float(value))


async def _ids(life: BrokerLife) -> None:
    await life.new_producer_id()


async def _delete_records(life: BrokerLife) -> None:
    await life.delete_records(life.dice.choice(life.ledger.living(compacted=False)))


async def _share(life: BrokerLife) -> None:
    await share(life, life.dice.choice(life.ledger.living(compacted=False)))


async def _shorten(life: BrokerLife) -> None:
    await shorten(life)


async def _retain(life: BrokerLife) -> None:
    await life.retain(life.dice.choice(life.ledger.living(compacted=False)))


async def _clean(life: BrokerLife) -> None:
    await life.clean(life.dice.choice(life.ledger.living(compacted=True)))


async def _checkpoint(life: BrokerLife) -> None:
    life.world.broker.logs.checkpoint()


async def _remove(life: BrokerLife) -> None:
    life.world.broker.logs.remove_deleted()


async def _restart(life: BrokerLife) -> None:
    await life.restart()


async def _kill(life: BrokerLife) -> None:
    await life.kill()


async def _roll(life: BrokerLife) -> None:
    life.dice.choice(life.world.logs()).roll()


def _any(life: BrokerLife) -> TopicFacts:
    return life.dice.choice(life.ledger.living())


ORDINARY: dict[Step, int] = {
    _write: 4, _sync: 1, _checkpoint: 1, _remove: 1, _restart: 1, _kill: 1, _roll: 1
}  # fmt: skip
LIVES: dict[str, dict[Step, int]] = {
    "transactions": {**ORDINARY, _transact: 5},
    "topics": {**ORDINARY, _create_or_delete: 4, _delete_records: 2, _offsets: 2},
    "groups": {**ORDINARY, _offsets: 3, _join: 2, _create_or_delete: 1, _transact: 1},
    "queues": {
        **ORDINARY,
        _share: 6,
        _shorten: 3,
        _create_or_delete: 1,
        _delete_records: 1,
        _transact: 1,
    },
    "jobs": {**ORDINARY, _share: 8, _shorten: 1},
    "settings": {**ORDINARY, _settings: 4, _ids: 2, _create_or_delete: 1},
    "removal": {**ORDINARY, _transact: 4, _retain: 3, _clean: 4, _delete_records: 1},
}
"""Steps of each life, with their weights."""


async def live(life: BrokerLife, name: str, steps: int) -> None:
    """A life from its first topics on, to its end."""
    life.step = "the first topics"
    await life.create("t")
    await life.create("k", min_cleanable_dirty_ratio="0.0")
    await life.make_groups()
    if name == "jobs":
        await make_jobs(life)
    kinds = list(LIVES[name])
    weights = list(LIVES[name].values())
    for number in range(steps):
        (step,) = life.dice.choices(kinds, weights)
        life.step = f"step {number} ({step.__name__[1:]})"
        note_ends(life)
        await life.attempt(step)
        await life.settle()
        life.world.clock.advance(life.dice.choice((0, 1, 500)))


def run(
    name: str, seed: int, survivals: int = 1, *, nested: bool = False, steps: int = 20
) -> BrokerLife:
    """One life; a BrokenPromiseError names what was promised and not kept."""

    async def lived() -> BrokerLife:
        life = BrokerLife(seed, survivals, nested=nested)
        await live(life, name, steps)
        life.world.fs.on_call = None
        life.world.ends()
        return life

    return asyncio.run(asyncio.wait_for(lived(), LONGEST_SECONDS))


__all__ = ["LIVES", "BrokenPromiseError", "live", "run"]
