"""Filters of DescribeAcls and DeleteAcls: which entries one lets through (KIP-140, KIP-290)."""

from typing import NamedTuple

from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from protocol.acls import AclOperation, AclPermission, PatternType, ResourceType


class AclFilter(NamedTuple):
    """Conditions on entries; None and ANY let everything through."""

    resource_type: ResourceType
    pattern_type: PatternType
    name: str | None
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: AclPermission

    def found_in(self, book: AclBook) -> list[Acl]:
        """The entries of a book that it lets through, in their order."""
        if not self.is_exact:
            return [acl for acl in book.acls if self.accepts(acl)]
        only = Acl(
            self.resource_type,
            self.pattern_type,
            self.name or "",
            self.principal or "",
            self.host or "",
            self.operation,
            self.permission,
        )
        return [only] if only in book else []

    @property
    def is_exact(self) -> bool:
        """True when it names one entry; any other is looked for among all."""
        return (
            None not in {self.name, self.principal, self.host}
            and self.pattern_type in {PatternType.LITERAL, PatternType.PREFIXED}
            and self.resource_type is not ResourceType.ANY
            and self.operation is not AclOperation.ANY
            and self.permission is not AclPermission.ANY
        )

    def accepts(self, acl: Acl) -> bool:
        """True for an entry that meets every condition. ALL is an operation like others."""
        return (
            self.resource_type in {ResourceType.ANY, acl.resource_type}
            and self._accepts_name(acl)
            and self.principal in {None, acl.principal}
            and self.host in {None, acl.host}
            and self.operation in {AclOperation.ANY, acl.operation}
            and self.permission in {AclPermission.ANY, acl.permission}
        )

    def _accepts_name(self, acl: Acl) -> bool:
        if self.pattern_type is PatternType.MATCH:
            return self.name is None or acl.fits(self.name)
        is_kind = self.pattern_type in {PatternType.ANY, acl.pattern_type}
        return is_kind and self.name in {None, acl.name}
