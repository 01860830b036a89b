"""One entry of access control: who may, or may not, do what to which resources, and from where."""

import ipaddress
from typing import NamedTuple

from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType, bits_of

ANY_NAME = "*"
"""Name of a literal pattern that fits every name."""
ANY_HOST = "*"
ANY_USER = "User:*"

_IMPLYING = {
    AclOperation.DESCRIBE: frozenset(
        (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER)
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset((AclOperation.ALTER_CONFIGS,)),
}


_EVERY = bits_of(tuple(AclOperation))


def _covered_by(operation: AclOperation, *, denies: bool) -> int:
    """Bits of the operations that an entry over one decides."""
    if operation is AclOperation.ALL:
        return _EVERY
    implied = [each for each, by in _IMPLYING.items() if operation in by and not denies]
    return bits_of((operation, *implied))


_ALLOWED = tuple(_covered_by(each, denies=False) for each in AclOperation)
_DENIED = tuple(_covered_by(each, denies=True) for each in AclOperation)


class Acl(NamedTuple):
    """An entry. `principal` is `User:NAME`, `host` an address or `*`."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def denies(self) -> bool:
        """True when it takes a right away."""
        return self.permission is AclPermission.DENY

    def fits(self, name: str) -> bool:
        """True when the pattern is about a resource of this name (of its type)."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in {name, ANY_NAME}

    def is_for(self, principal: str, host: str) -> bool:
        """True when it is about this user at this address, as `address_of` gives it."""
        return self.principal in {principal, ANY_USER} and self.host in {host, ANY_HOST}

    def covers(self, operation: AclOperation) -> bool:
        """True when it decides over an operation. What allows implies more than what denies."""
        return bool(self.bits & bits_of((operation,)))

    @property
    def bits(self) -> int:
        """Bits of all operations that it covers."""
        return (_DENIED if self.denies else _ALLOWED)[self.operation]

    def __str__(self) -> str:
        """For operators: `allow User:a to read topic "x" from *`."""
        begins = "names beginning with " if self.pattern_type is PatternType.PREFIXED else ""
        kind, operation = self.resource_type.name.lower(), self.operation.name.lower()
        verb = "deny" if self.denies else "allow"
        return (
            f'{verb} {self.principal} to {operation} {kind} {begins}"{self.name}" from {self.host}'
        )


def address_of(host: str) -> str:
    """An address in the one form that is compared: `::ffff:10.0.0.1` is `10.0.0.1`.

    What is no address stays as it is, and so matches no client.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)
