"""Callers of the HTTP port, and their rights."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from broker.http.port.messages import ApiError
from broker.runtime.principals import ANONYMOUS, Principal
from broker.runtime.rights import MARKS, Rights
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType


class Role(IntEnum):
    """The right of a token; each has those of the ones before it."""

    READ = 1
    """It may see everything: every DESCRIBE and DESCRIBE_CONFIGS."""
    OPERATE = 2
    """It may also confirm clock and start, move a test clock, and set groups back."""
    ADMIN = 3


ROLES = MappingProxyType({each.name.lower(): each for each in Role})
"""By their names in a file of tokens."""


class Open(NamedTuple):
    """Need of a route that everybody may ask who gets in at all."""

    why: str

    def __str__(self) -> str:
        """For the documentation."""
        return "open"


class Needs(NamedTuple):
    """Need of a route: the right of a user, and the role of a token."""

    operation: AclOperation
    kind: ResourceType
    part: str = ""
    """The part of the path that names the resource. Empty: the cluster; or, for other types, the
    route shows of many resources those that the caller may see.
    """
    role: Role = Role.READ

    def __str__(self) -> str:
        """For the documentation: the right of users, and the role of tokens."""
        kind = self.kind.name.replace("_", " ").lower()
        return f"{self.operation.name} {kind}, {self.role.name.lower()}"


@dataclass(frozen=True, slots=True)
class Caller:
    """Used by one thread at a time."""

    principal: Principal = ANONYMOUS
    rights: Rights | None = None
    """None: everything is allowed that the role allows."""
    role: Role = Role.ADMIN
    is_known: bool = True
    """False: it has not said who it is, which might help."""

    def may(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """True when it may do this to the resource of this name."""
        return self.rights is None or self.rights.may(MARKS[kind][operation], name)

    def sees(self, kind: ResourceType, name: str) -> bool:
        """True when it may know of a resource. What it may not is as if it were not there."""
        return self.may(AclOperation.DESCRIBE, kind, name)

    def seen(self, kind: ResourceType, names: Iterable[str]) -> list[str]:
        """Those that it may know of."""
        if self.rights is None:
            return list(names)
        return [each for each in names if self.sees(kind, each)]

    def sees_topic(self, name: str) -> bool:
        """True when it may know of a topic."""
        return self.sees(ResourceType.TOPIC, name)

    def sees_group(self, name: str) -> bool:
        """True when it may know of a group."""
        return self.sees(ResourceType.GROUP, name)


EVERYBODY = Caller()
"""The caller of a broker where everything is allowed to everybody who gets in."""


def check_allowed(caller: Caller, needs: Needs | Open, named: str) -> None:
    """ApiError 403 when the caller may not ask this; 401 when it has not said who it is.

    `named` is the resource's name in the path. One that the caller may not know of is let through:
    it will not be found, as one that is not there.
    """
    if isinstance(needs, Open):
        return
    if caller.role < needs.role:
        raise ApiError(
            403, "role", f"This needs a token of the role {needs.role.name.lower()} or a higher one"
        )
    if caller.rights is None or _is_allowed(caller, needs, named):
        return
    if not caller.is_known:
        raise ApiError(401, "identity", "This broker has access control: say who you are")
    raise ApiError(403, "forbidden", _denial(caller, needs, named))


def _is_allowed(caller: Caller, needs: Needs, named: str) -> bool:
    assert caller.rights is not None
    if needs.kind is ResourceType.CLUSTER:
        return caller.may(needs.operation, needs.kind, CLUSTER_NAME)
    if not needs.part:
        mark = MARKS[needs.kind][needs.operation]
        return caller.is_known or caller.rights.may_on_any(mark)
    is_seen = caller.sees(needs.kind, named)
    is_allowed = caller.may(needs.operation, needs.kind, named)
    return is_allowed if is_seen else caller.is_known


def _denial(caller: Caller, needs: Needs, named: str) -> str:
    kind = needs.kind.name.lower()
    what = "the cluster" if needs.kind is ResourceType.CLUSTER else f"{kind} {named!r}"
    return f"{caller.principal} may not {needs.operation.name} {what}: see kafka-acls"
