"""`horolog serve`: one broker in this process, from the command line to the exit status.

Signals: SIGTERM and SIGINT stop gracefully, a second one at once; SIGHUP reads the settings again.
When ready, one line goes to standard output; everything else is the log on standard error.
"""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from broker.daemon.app import Broker, StartGivenUp
from broker.daemon.refusals import WrongClock, check_clock, refusal_of
from broker.daemon.reload import Reload
from broker.runtime.event_log import configure, event
from broker.runtime.exit_status import NOT_DURABLE
from broker.runtime.test_clock import HeldClock
from broker.server.server import ListenError
from config.errors import ConfigError
from config.names import broker_name
from config.quantities import iso, parse_instant
from config.security.protocols import PLAINTEXT
from config.sources import Loaded, load
from config.store import ConfigStore
from storage.env import Clock
from storage.errors import StorageError
from storage.posix import real_env

FORCED_EXIT = 130
GC_THRESHOLDS = (20_000, 10, 5)
"""Requests make few circles of objects and full collections are dear; but what a node no longer
leads, deleted topics and closed connections are freed by one: after a million new objects, which
are some 100 MB, and only if they are a quarter of all.
"""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
MAPPED_BYTES = 1 * 1024 * 1024  # buffers of this size are mapped by themselves
KEPT_HEAP_BYTES = 8 * 1024 * 1024  # free memory at the top of a heap
SWITCH_SECONDS = 0.0005  # how long the loop may keep the fsync thread waiting for its turn
SAID_BY_KAFKA = "Kafka Server started: Transitioning from RECOVERY to RUNNING"
"""Line of a Kafka's log that tools such as Testcontainers wait for."""


LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def serve(
    *,
    flags: Sequence[str],
    file: str | None,
    log_level: str,
    log_as_json: bool,
    loop_factory: LoopFactory | None,
    test_clock: str | None = None,
) -> int:
    """Runs until a signal; returns the exit status.

    `test_clock` is the first time of a clock that tests hold; None leaves time alone. The log keeps
    to the machine's time in any case.
    """
    env = real_env()
    configure(level=log_level, as_json=log_as_json, now_ms=env.clock.now_ms)
    try:
        check_clock(env.clock)
        loaded = load(flags=flags, file=file)
        config = ConfigStore(loaded.layers)
        held_clock = _held_clock(test_clock, env.clock)
    except (ConfigError, WrongClock) as error:
        return _refused(error)
    for ignored in loaded.ignored:
        event("setting_ignored", "warning", detail=ignored)
    for name in _exposed(loaded):
        event("secret_on_command_line", "warning", setting=name)
    _tune()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        try:
            broker = Broker(env, config, runner.get_loop(), held_clock=held_clock)
        except ConfigError as error:
            return _refused(error)
        reload = Reload(broker.services, partial(load, flags=flags, file=file))
        return runner.run(_serve(broker, reload))


def _exposed(loaded: Loaded) -> list[str]:
    """Secret settings whose values every user of this machine can see, in the list of processes."""
    given = (each for each in loaded.layers[0].settings.values() if each.text)
    return [
        each.name
        for each in given
        if not each.reference and any(key.sensitive for key in broker_name(each.name).keys)
    ]


def _held_clock(start: str | None, machine: Clock) -> HeldClock | None:
    """The clock of `--test-clock START`; ConfigError when START is no time."""
    if start is None:
        return None
    try:
        clock = HeldClock(machine, parse_instant(start, machine.now_ms()))
    except ValueError as error:
        raise ConfigError("", str(error), where="--test-clock") from error
    event(
        "test_clock",
        "warning",
        detail="test clock in use: POST /api/clock/... moves it; never for real data",
        starts_at=iso(clock.now_ms()),
    )
    return clock


async def _serve(broker: Broker, reload: Reload) -> int:
    stopping = broker.services.stopping
    _stop_on_signals(broker, reload)
    try:
        await broker.start()
    except StartGivenUp:
        event("stopped", "info", clean=True)
        return 0
    except (ListenError, StorageError, ConfigError) as error:  # ConfigError: stored settings
        return _refused(error)
    gc.collect()
    gc.freeze()
    _say_ready(broker)
    await stopping.wait()
    event("stopping", "info")
    await reload.stop()
    clean = await broker.stop()
    event("stopped", "info", clean=clean)
    return 0 if clean else NOT_DURABLE


def _say_ready(broker: Broker) -> None:
    settings = broker.services.config.broker_config
    line = f"horolog ready bootstrap={broker.bootstrap}"
    if broker.http is not None:
        scheme = "https://" if settings.http_has_tls else ""
        line += f" http={scheme}{broker.http}"
    with suppress(OSError, ValueError):  # it was closed, or its disk is full: the log says it too
        sys.stdout.write(f"{line} next: kcat -L -b {broker.bootstrap}{_by(broker)}\n")
        sys.stdout.flush()
    event(
        "ready",
        bootstrap=broker.bootstrap,
        topics=len(broker.services.topics.image.topics),
        detail=SAID_BY_KAFKA,
    )


def _by(broker: Broker) -> str:
    """Options that kcat needs to speak as the first listener does."""
    settings = broker.services.config.broker_config
    protocol = settings.protocol_of(settings.client_listeners[0].name) or PLAINTEXT
    return "" if protocol == PLAINTEXT else f" -X security.protocol={protocol}"


def _stop_on_signals(broker: Broker, reload: Reload) -> None:
    stopping, loop = broker.services.stopping, broker.services.loop

    def stop() -> None:
        if stopping.is_set():
            event("stop_forced", "warning")
            os._exit(FORCED_EXIT)
        stopping.set()
        broker.give_up()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload.begin)


def _tune() -> None:
    """Limits and intervals of the process that the defaults set for other kinds of program."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.set_threshold(*GC_THRESHOLDS)
    _return_memory()
    sys.setswitchinterval(SWITCH_SECONDS)


def _return_memory() -> None:
    """Large buffers go back to the system when they are freed.

    Left alone, glibc raises both bounds after the first large buffer that is freed, and then keeps
    up to 64 MiB in the heap of every thread. (Only glibc has `mallopt`.)
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_HEAP_BYTES)


def _refused(error: Exception) -> int:
    status, advice = refusal_of(error)
    for line in (f"{error}: {advice}" if advice else str(error)).splitlines():
        sys.stderr.write(f"horolog: {line}\n")
    return status
