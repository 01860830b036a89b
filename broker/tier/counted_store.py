"""A store whose requests are counted, by what they are for."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from broker.access.store.objects import LIST_PAGE, requests_of_upload
from broker.tier.copier.book import AccountBook
from broker.tier.store_account import (
    Purpose,
    RequestKind,
    StoreRequest,
    TopicKind,
    fault_of,
    purpose_of,
)
from storage.env import Buffer
from storage.tier.names import RECORDS
from storage.tier.port import ObjectExists, ObjectFacts, ObjectMissing, ObjectStore, StoreError

T = TypeVar("T")


class CountedStore:
    """The `ObjectStore` of another one. Used from any thread.

    Manifests and what is the cluster's are known by their names; all else is for `purpose`.
    """

    def __init__(self, store: ObjectStore, account: AccountBook, purpose: Purpose) -> None:
        """Nothing is asked."""
        self._store = store
        self._account = account
        self._purpose = purpose

    def put_new(self, key: str, data: Buffer) -> None:
        """As the port has it."""
        what = self._asked(key, StoreRequest.PUT)
        self._ask(what, lambda: self._store.put_new(key, data), lambda _: len(data))

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """As the port has it."""
        account, is_segment = self._account, key.endswith(RECORDS)
        what = self._asked(key, StoreRequest.PUT, requests_of_upload(size_bytes))
        if is_segment:
            account.of_topic(key, TopicKind.COPIES)
        try:
            self._ask(
                what, lambda: self._store.put_file(key, parts, size_bytes), lambda _: size_bytes
            )
        except StoreError:
            account.of_topic(key, TopicKind.FAILED_COPIES)
            raise
        account.of_topic(key, TopicKind.COPIED_BYTES, size_bytes)

    def get(self, key: str) -> bytes:
        """As the port has it."""
        return self._ask(self._asked(key, StoreRequest.GET), lambda: self._store.get(key), len)

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it."""
        what = self._asked(key, StoreRequest.GET)
        is_read = what.purpose is Purpose.READ
        if is_read:
            self._account.of_topic(key, TopicKind.READS)
        try:
            data = self._ask(what, lambda: self._store.get_range(key, position, size), len)
        except StoreError as error:
            if not is_read:
                self._account.of_topic(key, TopicKind.FAILED_COPIES)
            elif not isinstance(error, ObjectMissing):  # a lost object counts as damage
                self._account.of_topic(key, TopicKind.FAILED_READS)
            raise
        if is_read:
            self._account.of_topic(key, TopicKind.READ_BYTES, len(data))
        return data

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """As the port has it: one request, which counts as answered with its last piece."""
        what = self._asked(key, StoreRequest.GET)
        found, size_bytes = self._store.pieces(key, position, size), 0
        try:
            for piece in found:
                size_bytes += len(piece)
                yield piece
        except StoreError as error:
            self._account.failed(what, fault_of(error))
            self._account.of_topic(key, TopicKind.FAILED_COPIES)
            raise
        self._account.answered(what, size_bytes)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """As the port has it. A request is counted for each page of objects that was begun."""
        what = RequestKind(purpose_of(prefix, self._purpose), StoreRequest.LIST)
        found = self._store.list(prefix, after=after)
        seen = 0
        self._account.asked(what)
        while (each := self._ask(what, lambda: next(found, None))) is not None:
            if seen and seen % LIST_PAGE == 0:
                self._account.asked(what)
            seen += 1
            yield each

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it."""
        if not keys:
            return
        what = self._asked(keys[0], StoreRequest.DELETE, -(-len(keys) // LIST_PAGE))
        segments = [key for key in keys if key.endswith(RECORDS)]
        for key in segments:
            self._account.of_topic(key, TopicKind.DELETIONS)
        try:
            self._ask(what, lambda: self._store.delete(keys))
        except StoreError:
            for key in segments:
                self._account.of_topic(key, TopicKind.FAILED_DELETIONS)
            raise

    def _asked(self, key: str, request: StoreRequest, requests: int = 1) -> RequestKind:
        what = RequestKind(purpose_of(key, self._purpose), request)
        self._account.asked(what, requests)
        return what

    def _ask(
        self, what: RequestKind, call: Callable[[], T], size_of: Callable[[T], int] = lambda _: 0
    ) -> T:
        try:
            answer = call()
        except ObjectExists:
            self._account.answered(what)
            raise
        except StoreError as error:
            self._account.failed(what, fault_of(error))
            raise
        self._account.answered(what, size_of(answer))
        return answer
