"""The port by which whole texts that clients change are decided: quotas, users, ACLs, tokens,
settings.

A broker that stands alone decides by itself, by writing its files. In a fleet each text is a row,
and every node follows it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from broker.runtime.event_log import event
from storage.errors import StorageError

T = TypeVar("T")

TRIES = 10
"""Of a change, while other nodes are faster each time."""


class NotDecided(StorageError):  # noqa: N818 - what happened
    """Another node has changed it meanwhile, or nobody said in time that it is so."""

    def __init__(self, message: str) -> None:
        """`message`: what, and what to do."""
        super().__init__("the fleet's catalog", message)


class OutOfDate(NotDecided):
    """Another node has changed it meanwhile: what it is now may be changed."""


class FollowsOthers(Protocol):
    """Knows what others decide."""

    is_shared: bool
    """True in a fleet: other nodes go by what was decided, whatever becomes of it here."""

    async def catch_up(self) -> None:
        """Has what others have decided until now; hold no lock of a change. What cannot be had now
        shows when a change is decided.
        """


class DocumentAuthority(FollowsOthers, Protocol):
    """Decides before anything is written here."""

    async def decided(self, name: str, content: bytes) -> None:
        """A document is this from now on. StorageError, and it is not, or nobody knows.

        OutOfDate, and it is not: another node has changed what it was made of.
        """

    def check_known(self, name: str) -> None:
        """A document is here as it was when `catch_up` was asked last: who finds nothing to change
        in it may say so. NotDecided when that could not be had.
        """


class DecidesDocumentsHere:
    """The `DocumentAuthority` of a broker that stands alone."""

    is_shared = False

    async def decided(self, name: str, content: bytes) -> None:
        """As it was asked for."""

    def check_known(self, name: str) -> None:
        """There are no others who change it."""

    async def catch_up(self) -> None:
        """There are no others."""


async def keep(
    authority: FollowsOthers,
    name: str,
    count: Callable[[], None],
    write: Callable[[], Awaitable[None]],
) -> None:
    """Has a document count that was decided, and be in its file.

    A broker alone has its file alone: StorageError, and it does not count. In a fleet its row is
    durable already: it counts at once on whatever disk, since this node goes by its version from
    now on. The file is a copy, which no start serves clients by.
    """
    if not authority.is_shared:
        await write()
        count()
        return
    count()
    try:
        await write()
    except StorageError as error:
        event("fleet_copy_not_written", "warning", document=name, error=error)


async def on_the_newest(
    authority: FollowsOthers, changing: asyncio.Lock, change: Callable[[], Awaitable[T]]
) -> T:
    """The outcome of `change`, made under its lock of what there is now on whatever node.

    It is made once more when another node was faster. OutOfDate after `TRIES`, and what `change`
    raises.
    """
    for _ in range(TRIES - 1):
        await authority.catch_up()
        with suppress(OutOfDate):
            async with changing:
                return await change()
    await authority.catch_up()
    async with changing:
        return await change()
