"""All entries of access control, and the verdict that they give (Kafka's StandardAuthorizer).

A book is immutable: a change makes the next one, so that it can be written before it counts. The
entries lie by resource type and name, so that a verdict looks only at patterns that fit.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from broker.security.acl import ANY_NAME, Acl
from protocol.acls import SUPPORTED, AclOperation, PatternType, ResourceType, bits_of

MAX_ACLS = 100_000

ByName = Mapping[str, tuple[Acl, ...]]


class AclVerdict(NamedTuple):
    """Decision over an operation, and the entry that it rests on; None if no entry does."""

    allowed: bool
    acl: Acl | None


class _Patterns(NamedTuple):
    """The entries of one resource type. Prefixes lie by their length."""

    literal: ByName
    prefixed: Mapping[int, ByName]


_NO_PATTERNS = _Patterns(MappingProxyType({}), MappingProxyType({}))


class AclBook:
    """The entries, each once, in the order in which they were added."""

    __slots__ = ("_all", "_patterns", "acls")

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        """Sorts the entries by what they are about."""
        self._all = dict.fromkeys(acls)
        self.acls: tuple[Acl, ...] = tuple(self._all)
        self._patterns = {
            kind: _patterns(acl for acl in self.acls if acl.resource_type is kind)
            for kind in {acl.resource_type for acl in self.acls}
        }

    def about(self, kind: ResourceType, name: str) -> Iterator[Acl]:
        """The entries whose pattern fits a resource."""
        literal, prefixed = self._patterns.get(kind, _NO_PATTERNS)
        yield from literal.get(name, ())
        if name != ANY_NAME:
            yield from literal.get(ANY_NAME, ())
        for length, by_name in prefixed.items():
            yield from by_name.get(name[:length], ())

    def verdict(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType, name: str,
        *, by_default: bool,
    ) -> AclVerdict:  # fmt: skip
        """Any entry that denies decides, then any that allows.

        `by_default` decides over a resource that no entry of anybody is about; one that entries of
        others are about is denied. `host` is as `address_of` gives it.
        """
        allowing, is_free = None, True
        for acl in self.about(kind, name):
            is_free = False
            if acl.is_for(principal, host) and acl.covers(operation):
                if acl.denies:
                    return AclVerdict(allowed=False, acl=acl)
                allowing = allowing or acl
        return AclVerdict(allowing is not None or (is_free and by_default), allowing)

    def bits(
        self, principal: str, host: str, kind: ResourceType, name: str, *, by_default: bool
    ) -> int:
        """Bits of the operations that `verdict` allows, with one look at the entries (KIP-430)."""
        allowed = denied = 0
        is_free = True
        for acl in self.about(kind, name):
            is_free = False
            if acl.is_for(principal, host):
                if acl.denies:
                    denied |= acl.bits
                else:
                    allowed |= acl.bits
        every = bits_of(SUPPORTED[kind])
        return every if is_free and by_default else every & allowed & ~denied

    def allows_any(
        self, principal: str, host: str, operation: AclOperation, kind: ResourceType
    ) -> bool:
        """True when some resource of this type may be used, whatever its name (KIP-679).

        Entries count for the operation that they name, and ALL: nothing is implied.
        """
        named = {operation, AclOperation.ALL}
        ours = [
            acl
            for acl in self.acls
            if acl.resource_type is kind and acl.is_for(principal, host) and acl.operation in named
        ]
        denied = {(acl.pattern_type, acl.name) for acl in ours if acl.denies}
        if (PatternType.LITERAL, ANY_NAME) in denied:
            return False
        return any(not acl.denies and not _is_undone(acl, denied) for acl in ours)

    def with_acls(self, acls: Iterable[Acl]) -> "AclBook":
        """The next book, with these as well."""
        return AclBook((*self.acls, *acls))

    def without(self, acls: Iterable[Acl]) -> "AclBook":
        """The next book, without these."""
        gone = set(acls)
        return AclBook(acl for acl in self.acls if acl not in gone)

    def __contains__(self, acl: object) -> bool:
        """True for an entry that is in it."""
        return acl in self._all

    def __eq__(self, other: object) -> bool:
        """Of the same entries in the same order."""
        return isinstance(other, AclBook) and self.acls == other.acls

    def __hash__(self) -> int:
        """By the entries."""
        return hash(self.acls)


def _is_undone(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """True when all that an entry allows is denied by the same literal, or a prefix of it."""
    if acl.pattern_type is PatternType.LITERAL:
        if acl.name == ANY_NAME:
            return False
        if (PatternType.LITERAL, acl.name) in denied:
            return True
    beginnings = (acl.name[:end] for end in range(1, len(acl.name) + 1))
    return any((PatternType.PREFIXED, each) in denied for each in beginnings)


def _patterns(acls: Iterable[Acl]) -> _Patterns:
    literal: dict[str, list[Acl]] = {}
    prefixed: dict[int, dict[str, list[Acl]]] = {}
    for acl in acls:
        if acl.pattern_type is PatternType.PREFIXED:
            by_name = prefixed.setdefault(len(acl.name), {})
        else:
            by_name = literal
        by_name.setdefault(acl.name, []).append(acl)
    return _Patterns(_frozen(literal), {size: _frozen(each) for size, each in prefixed.items()})


def _frozen(by_name: Mapping[str, list[Acl]]) -> ByName:
    return {name: tuple(acls) for name, acls in by_name.items()}
