"""A real broker inside the test's own process and loop, on free ports and real files."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from broker.daemon.app import Broker
from broker.runtime.test_clock import HeldClock
from config.sources import load
from config.store import ConfigStore
from storage.env import Env
from storage.posix import real_env
from tests.support.clients.wire import AsyncWireClient


def make_broker(
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    env: Env | None = None,
    held_clock: HeldClock | None = None,
) -> Broker:
    """A broker that was not started."""
    flags = [
        f"log.dirs={data_dir}",
        "listeners=PLAINTEXT://127.0.0.1:0",
        "horolog.http.listener=127.0.0.1:0",
        *(f"{key}={value}" for key, value in (settings or {}).items()),
    ]
    config = ConfigStore(load(flags=flags, environment={}).layers)
    loop = asyncio.get_running_loop()
    return Broker(env or real_env(), config, loop, held_clock=held_clock)


def frozen_at(start_ms: int) -> HeldClock:
    """A clock that stands still at a time, until the admin port moves it."""
    held = HeldClock(real_env().clock, start_ms)
    held.set_speed(0)
    held.set_wall(start_ms)  # it ran for a moment
    return held


@asynccontextmanager
async def running_broker(
    data_dir: Path,
    settings: Mapping[str, str] | None = None,
    env: Env | None = None,
    held_clock: HeldClock | None = None,
) -> AsyncIterator[Broker]:
    """A broker that serves; stopped gracefully at the end."""
    broker = make_broker(data_dir, settings, env, held_clock)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


@asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[AsyncWireClient]:
    """A connection to it."""
    client = await AsyncWireClient.connect(*broker.bootstrap)
    try:
        yield client
    finally:
        await client.close()
