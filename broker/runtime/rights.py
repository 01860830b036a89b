"""Rights that a request is checked against, as its handler asks for them.

A right is an operation on a type of resource. Requests ask for several a time, so each right is a
number of one bit, its mark, which is cheaper to look up than two members of enumerations.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from protocol.acls import AclOperation, ResourceType

REFUSED = 1
"""The bit of a request that was answered with an error code."""

MARKS: tuple[tuple[int, ...], ...] = tuple(
    tuple(1 << (kind * len(AclOperation) + operation + 1) for operation in range(len(AclOperation)))
    for kind in range(len(ResourceType))
)
"""Marks by type of resource, then by operation."""

RIGHTS: Mapping[int, tuple[AclOperation, ResourceType]] = MappingProxyType(
    {
        MARKS[kind][operation]: (operation, kind)
        for kind in ResourceType
        for operation in AclOperation
    }
)
"""The right of each mark."""


class Asker(Protocol):
    """A request that asks for rights, as the audit tells of it."""

    @property
    def client_id(self) -> str:
        """The name that the client gives itself."""

    @property
    def listener_name(self) -> str:
        """The listener it came in by."""

    @property
    def api_key(self) -> int:
        """The API that it calls."""


class Rights(Protocol):
    """Rights of one user at one address."""

    @property
    def granted(self) -> Mapping[int, Collection[str]]:
        """Names of resources on which a right is known to be given, by its mark.

        The cheap way to a yes, on the event loop; without one, `may` decides.
        """

    def may(self, mark: int, name: str, /) -> bool:
        """True when the right of this mark is given on the resource of this name."""

    def bits(self, kind: ResourceType, name: str, /) -> int:
        """Bits of the operations that are allowed on a resource (KIP-430)."""

    def may_on_any(self, mark: int, /) -> bool:
        """True when the right of this mark is given on some resource of its type."""

    def denied(self, mark: int, name: str, asker: Asker, /) -> None:
        """The request was refused something because `may` said no: that is for the audit."""
