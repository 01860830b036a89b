"""The port by which whole texts that clients change are decided: quotas, users, ACLs, settings.

A broker that stands alone decides by itself, by writing its files. In a fleet each text is a row,
and every node follows it.
"""

from typing import Protocol


class DocumentAuthority(Protocol):
    """Decides before anything is written here."""

    async def decided(self, name: str, content: bytes) -> None:
        """A document is this from now on. StorageError, and it is not, or nobody knows."""


class DecidesDocumentsHere:
    """The `DocumentAuthority` of a broker that stands alone."""

    async def decided(self, name: str, content: bytes) -> None:
        """As it was asked for."""
