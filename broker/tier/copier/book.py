"""Counts of what a copier asks of the store, on their way into the broker's account."""

from collections.abc import Sequence
from typing import Any, Protocol

from broker.tier.store_account import Purpose, RequestKind, StoreFault, StoreRequest, TopicKind

Row = tuple[str | int, ...]


class AccountBook(Protocol):
    """A `StoreAccount`, or one that passes on what it hears."""

    def asked(self, what: RequestKind, requests: int = 1) -> None:
        """So many requests go out."""

    def answered(self, what: RequestKind, size_bytes: int = 0) -> None:
        """The store did it; so many bytes of content went there, or came."""

    def failed(self, what: RequestKind, fault: StoreFault) -> None:
        """The store did not do it, or did not say."""

    def of_topic(self, key: str, kind: TopicKind, number: int = 1) -> None:
        """Counts it for the topic of an object."""

    def spoilt(self, key: str) -> None:
        """An answer had other bytes than were copied."""


class RowBook:
    """Rows of what happened, in its order, until they are taken."""

    def __init__(self) -> None:
        """Empty."""
        self._rows: list[Row] = []

    def take(self) -> list[Row]:
        """The rows since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def asked(self, what: RequestKind, requests: int = 1) -> None:
        """As an account has it."""
        self._rows.append(("asked", *what, requests))

    def answered(self, what: RequestKind, size_bytes: int = 0) -> None:
        """As an account has it."""
        self._rows.append(("answered", *what, size_bytes))

    def failed(self, what: RequestKind, fault: StoreFault) -> None:
        """As an account has it."""
        self._rows.append(("failed", *what, fault))

    def of_topic(self, key: str, kind: TopicKind, number: int = 1) -> None:
        """As an account has it."""
        self._rows.append(("of_topic", key, kind, number))

    def spoilt(self, key: str) -> None:
        """As an account has it."""
        self._rows.append(("spoilt", key))


def enter(rows: Sequence[Sequence[Any]], account: AccountBook) -> None:
    """Enters rows into an account."""
    for row in rows:
        match row:
            case ["asked", purpose, request, number]:
                account.asked(RequestKind(Purpose(purpose), StoreRequest(request)), number)
            case ["answered", purpose, request, number]:
                account.answered(RequestKind(Purpose(purpose), StoreRequest(request)), number)
            case ["failed", purpose, request, fault]:
                what = RequestKind(Purpose(purpose), StoreRequest(request))
                account.failed(what, StoreFault(fault))
            case ["of_topic", key, kind, number]:
                account.of_topic(key, TopicKind(kind), number)
            case ["spoilt", key]:
                account.spoilt(key)
