"""The place that a command works on: a running broker, or a directory that none uses."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

import click

from broker.cli.main import CommandFailed
from broker.cli.security.wire_client import WireClient, wired
from broker.runtime.exit_status import NOT_USABLE

if TYPE_CHECKING:
    from config.broker import BrokerConfig
    from storage.env import Env


class CommandPlace(NamedTuple):
    """A broker, or with `offline` a directory that none uses."""

    client: WireClient
    offline: bool
    data_dir: str | None
    file: str | None

    @property
    def directory(self) -> str:
        """The directory that the options name."""
        return directory_of(self.data_dir, self.file)


def placed(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command `place`, with its options."""

    @wired
    @click.option("--offline", is_flag=True, help="Work on a directory that no broker uses.")
    @click.option("--data-dir", metavar="DIR", help="With --offline: the data directory.")
    @click.option(
        "--config", "file", metavar="FILE", help="With --offline: settings file that names it."
    )
    @wraps(command)
    def with_place(
        *, client: WireClient, offline: bool, data_dir: str | None, file: str | None, **rest: object
    ) -> int:
        if not offline and (data_dir is not None or file is not None):
            raise click.UsageError("--data-dir and --config go with --offline")
        return command(place=CommandPlace(client, offline, data_dir, file), **rest)

    return with_place


def settings_of(file: str | None) -> "BrokerConfig":
    """The settings of a broker's file, or the defaults. CommandFailed for a wrong one."""
    from config.errors import ConfigError
    from config.sources import load
    from config.store import ConfigStore

    try:
        return ConfigStore(load(file=file).layers).broker_config
    except ConfigError as error:
        raise CommandFailed(str(error), NOT_USABLE) from error


def directory_of(data_dir: str | None, file: str | None) -> str:
    """The directory that the options name."""
    if data_dir is not None:
        return data_dir
    if file is None:
        raise click.UsageError("--data-dir or --config says where the directory is")
    return settings_of(file).log_dir


@contextmanager
def held(path: str, *, make: bool = False) -> "Iterator[Env]":
    """The machine, while no broker can use the directory. With `make`, a missing one is made.

    Raises CommandFailed while one does, and for whatever the disk refuses.
    """
    from storage.errors import DirectoryLocked, StorageError
    from storage.files.layout import LOCK_FILE
    from storage.posix import real_env

    env = real_env()
    try:
        if make:
            env.fs.make_dir(path)
        elif not env.fs.exists(path):
            raise CommandFailed(f"there is no data directory {path}", NOT_USABLE)
        lock = env.fs.lock(f"{path}/{LOCK_FILE}")
        try:
            yield env
        finally:
            lock.release()
    except DirectoryLocked as error:
        raise CommandFailed(f"{error}: stop the broker first", NOT_USABLE) from error
    except StorageError as error:
        raise CommandFailed(str(error), NOT_USABLE) from error
