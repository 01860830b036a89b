"""Authority of a broker: its entries of access control, durable, and the rights they give.

A change is checked, written, and then counts for every connection at once. Without
`authorizer.class.name` there are no rights to ask for: everything is allowed, for nothing.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from broker.runtime.documents import (
    DecidesDocumentsHere,
    DocumentAuthority,
    keep,
    on_the_newest,
)
from broker.runtime.principals import Principal
from broker.runtime.rights import RIGHTS, Asker
from broker.security.acl import Acl, address_of
from broker.security.acl_book import MAX_ACLS, AclBook, AclVerdict
from broker.security.acl_file import FILE_NAME, parse, render
from broker.security.acl_filter import AclFilter
from broker.security.audit.trail import Denial
from protocol.acls import SUPPORTED, AclOperation, ResourceType, bits_of
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane
    from broker.security.audit.trail import AuditTrail
    from config.store import ConfigStore
    from storage.env import FileSystem

DOCUMENT = "acls"
"""Name of the document that they are in a fleet."""
MAX_REMOVED = 10_000
"""Entries that one request may take away, as in Kafka."""
MAX_COMPARISONS = 2_000_000
"""Of filters with entries, for one request: about a second."""
MAX_VERDICTS = 1000
"""Verdicts that are remembered for a user at an address until an entry changes."""
ANYTHING = "hardcode"
"""The name that stands for any, where Kafka asks for a right to some resource."""


class Authority:
    """Used from the event loop only, but for `load`."""

    def __init__(
        self, fs: "FileSystem", lane: "DiskLane", config: "ConfigStore", trail: "AuditTrail"
    ) -> None:
        """Nothing is known until `load`. `trail` hears of denials."""
        self.trail = trail
        settings = config.broker_config
        self.is_on: bool = bool(settings.authorizer_class_name)
        self.super_users: frozenset[str] = frozenset(settings.super_users)
        self.allows_by_default: bool = settings.allow_everyone_if_no_acl_found
        self.authority: DocumentAuthority = DecidesDocumentsHere()
        self._changing = asyncio.Lock()
        self.book: AclBook = AclBook()
        self._rights: WeakValueDictionary[tuple[Principal, str], AclRights]
        self._rights = WeakValueDictionary()
        self._fs = fs
        self._lane = lane

    def load(self) -> None:
        """Before clients may come: what was set when it ran last. Blocks.

        Raises CorruptCheckpoint or NewerFormat when the file cannot be trusted.
        """
        path = self._path()
        if self._fs.exists(path):
            self.book = parse(path, self._fs.read_text(path))

    async def add(self, acls: Sequence[Acl]) -> None:
        """Makes entries durable, then lets them count.

        Raises StorageError, or POLICY_VIOLATION (44) when there would be too many.
        """

        async def add() -> None:
            if any(each not in self.book for each in acls):
                await self._decide(await self._lane.run(_added, self.book, acls))
            else:
                self.authority.check_known(DOCUMENT)

        await on_the_newest(self.authority, self._changing, add)

    async def remove(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        """Takes away what the filters let through, durably; gives the entries by filter.

        Raises StorageError, or INVALID_REQUEST (42) for more than Kafka takes away at once.
        """

        async def remove() -> list[list[Acl]]:
            found, book = await self._lane.run(_removed, self.book, filters)
            if book is not self.book:
                await self._decide(book)
            else:
                self.authority.check_known(DOCUMENT)
            return found

        return await on_the_newest(self.authority, self._changing, remove)

    async def follow(self, content: bytes) -> None:
        """Has the entries that an authority has decided. CorruptCheckpoint, NewerFormat."""
        book = parse(DOCUMENT, content.decode())
        async with self._changing:
            await self._use(book, content)

    def rights_of(self, principal: Principal, host: str) -> "AclRights | None":
        """The rights of a user at an address; None where everything is allowed to everybody.

        Connections of the same user and address have the same, as long as there is one.
        """
        if not self.is_on:
            return None
        rights = self._rights.get((principal, host))
        if rights is None:
            rights = self._rights[principal, host] = AclRights(self, principal, host)
        return rights

    def rights_for_one(self, principal: Principal, host: str) -> "AclRights | None":
        """The same for one thread alone: it forgets what it was asked with its last reference."""
        return AclRights(self, principal, host) if self.is_on else None

    async def _decide(self, book: AclBook) -> None:
        content = await self._lane.run(render, book)
        await self.authority.decided(DOCUMENT, content)
        await self._use(book, content)

    async def _use(self, book: AclBook, content: bytes) -> None:
        write = partial(self._lane.run, self._write, content)
        await keep(self.authority, DOCUMENT, partial(self._replace, book), write)

    def _replace(self, book: AclBook) -> None:
        """The entries of `book` count from now on."""
        self.book = book
        for rights in list(self._rights.values()):
            rights.forget()

    def _write(self, content: bytes) -> None:
        self._fs.write_atomically(self._path(), content)

    def _path(self) -> str:
        return f"{self._lane.log_dir}/{FILE_NAME}"


def _added(book: AclBook, acls: Sequence[Acl]) -> AclBook:
    """On the lane."""
    after = book.with_acls(acls)
    if len(after.acls) > MAX_ACLS:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"There would be more than {MAX_ACLS} ACLs")
    return after


def _removed(book: AclBook, filters: Sequence[AclFilter]) -> tuple[list[list[Acl]], AclBook]:
    """On the lane."""
    searches = sum(not each.is_exact for each in filters)
    if searches * len(book.acls) > MAX_COMPARISONS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{searches} filters that may fit several ACLs are too many for one request",
        )
    found = [each.found_in(book) for each in filters]
    gone = {acl for each in found for acl in each}
    if len(gone) > MAX_REMOVED:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Cannot remove more than {MAX_REMOVED} acls in a single delete operation.",
        )
    return found, book.without(gone) if gone else book


class AclRights:
    """The rights of one user at one address; what was asked lately is remembered."""

    __slots__ = (
        "__weakref__",
        "_authority",
        "_book",
        "_host",
        "_host_text",
        "_is_super",
        "_known",
        "_principal",
        "_some",
        "_verdicts",
        "_who",
        "granted",
    )

    def __init__(self, authority: Authority, principal: Principal, host: str) -> None:
        """Nothing is asked yet."""
        self._authority = authority
        self._who = principal
        self._principal = str(principal)
        self._host_text = host
        self._host = address_of(host)
        self._is_super = self._principal in authority.super_users
        self._book = authority.book
        self._verdicts: dict[int, dict[str, bool]] = {}
        """By the mark of the right, and the name of the resource."""
        self.granted: dict[int, set[str]] = {}
        """Names of the verdicts that were a yes, by mark."""
        self._some: dict[int, bool] = {}
        self._known = 0

    def may(self, mark: int, name: str) -> bool:
        """True when the right is given on a resource, by the entries as they are now."""
        if self._authority.book is not self._book:
            self.forget()
        by_name = self._verdicts.get(mark)
        found = None if by_name is None else by_name.get(name)
        return self._looked_up(mark, name) if found is None else found

    def bits(self, kind: ResourceType, name: str) -> int:
        """Bits of the operations that are allowed on a resource, by the entries as they are now."""
        if self._is_super:
            return bits_of(SUPPORTED[kind])
        authority = self._authority
        return authority.book.bits(
            self._principal, self._host, kind, name, by_default=authority.allows_by_default
        )

    def may_on_any(self, mark: int) -> bool:
        """True when the right is given on some resource of its type (KIP-679)."""
        if self.may(mark, ANYTHING):
            return True
        found = self._some.get(mark)
        if found is None:
            operation, kind = RIGHTS[mark]
            found = self._book.allows_any(self._principal, self._host, operation, kind)
            self._some[mark] = found
        return found

    def denied(self, mark: int, name: str, asker: Asker) -> None:
        """For the audit; which entry decides is looked up for the first line only."""
        right = RIGHTS[mark]
        denial = Denial(self._who, self._host_text, *right, name)
        self._authority.trail.denied(denial, asker, lambda: self._rule(right, name))

    def _rule(self, right: tuple[AclOperation, ResourceType], name: str) -> str:
        decides = self.verdict(*right, name).acl
        return "no ACL allows it" if decides is None else str(decides)

    def verdict(self, operation: AclOperation, kind: ResourceType, name: str) -> AclVerdict:
        """The verdict of the entries, with the one that decides; a super user needs none."""
        return self._authority.book.verdict(
            self._principal,
            self._host,
            operation,
            kind,
            name,
            by_default=self._authority.allows_by_default,
        )

    def _looked_up(self, mark: int, name: str) -> bool:
        if self._known >= MAX_VERDICTS:
            self.forget()
        found = self._is_super or self.verdict(*RIGHTS[mark], name).allowed
        if found:
            self.granted.setdefault(mark, set()).add(name)
        self._verdicts.setdefault(mark, {})[name] = found
        self._known += 1
        return found

    def forget(self) -> None:
        """Verdicts so far are made again, by the entries as they are now."""
        self._book = self._authority.book
        self._verdicts, self._some, self._known, self.granted = {}, {}, 0, {}
