"""The port by which whole texts that clients change are decided: quotas, users, ACLs, tokens,
settings.

A broker that stands alone decides by itself, by writing its files. In a fleet each text is a row,
and every node follows it.
"""

from typing import Protocol

from storage.errors import StorageError


class NotDecided(StorageError):  # noqa: N818 - what happened
    """Another node has changed it meanwhile, or nobody said in time that it is so."""

    def __init__(self, message: str) -> None:
        """`message`: what, and what to do."""
        super().__init__("the fleet's catalog", message)


class DocumentAuthority(Protocol):
    """Decides before anything is written here."""

    async def decided(self, name: str, content: bytes) -> None:
        """A document is this from now on. StorageError, and it is not, or nobody knows."""


class DecidesDocumentsHere:
    """The `DocumentAuthority` of a broker that stands alone."""

    async def decided(self, name: str, content: bytes) -> None:
        """As it was asked for."""
