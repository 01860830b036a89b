"""An object store whose calls fail, by a script or by a seed, in front of any other.

Faults are what stores and networks do to their callers: refuse, lose an answer, answer less or
other than was stored, forget an object. Each one is noted, so that a test can say what happened.
"""

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from typing import NamedTuple

from storage.env import Buffer
from storage.tier.port import (
    ObjectFacts,
    ObjectStore,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
)


class Fault(Enum):
    """Outcomes of a call that callers have to bear."""

    LOST_BEFORE = auto()
    """The request did not reach the store."""
    LOST_AFTER = auto()
    """The store did it, and the answer was lost. Of a list, a half arrives."""
    SLOW = auto()
    """It takes long, then it is done."""
    THROTTLED = auto()
    """The store wants fewer requests."""
    DENIED = auto()
    """The store refuses the credentials."""
    HALF = auto()
    """A read answers the first half of its bytes, as if it were all."""
    OTHER_BYTES = auto()
    """A read answers bytes of which one bit is another."""
    OBJECT_GONE = auto()
    """The store has lost the object, from here on."""


OPERATIONS = ("put_new", "put_file", "get", "get_range", "list", "delete")
_READS = frozenset(("get", "get_range"))
_ANYWHERE = frozenset((Fault.LOST_BEFORE, Fault.LOST_AFTER, Fault.SLOW, Fault.THROTTLED))
POSSIBLE: Mapping[str, frozenset[Fault]] = {
    operation: frozenset(Fault)
    if operation in _READS
    else _ANYWHERE | {Fault.DENIED}
    for operation in OPERATIONS
}  # fmt: skip
"""Faults by operation."""

Script = Callable[[str, str], Fault | None]
"""The fault of a call, by its operation and key; None: it succeeds. A list's key is its prefix."""


class Happened(NamedTuple):
    """A fault that was played."""

    operation: str
    key: str
    fault: Fault


class FaultyStore:
    """The `ObjectStore` of another one, with faults. Used from any thread."""

    def __init__(
        self, store: ObjectStore, script: Script, *, sleep: Callable[[], object] = lambda: None
    ) -> None:
        """`sleep` is called by slow calls; as it is, they take no time."""
        self._store = store
        self._sleep = sleep
        self._lock = threading.Lock()
        self._flips = random.Random(0)
        self.script = script
        self.happened: list[Happened] = []
        """The faults that were played, in order."""

    def put_new(self, key: str, data: Buffer) -> None:
        """As the port has it, but for the faults."""
        self._do("put_new", key, lambda: self._store.put_new(key, data))

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """As the port has it, but for the faults."""
        self._do("put_file", key, lambda: self._store.put_file(key, parts, size_bytes))

    def get(self, key: str) -> bytes:
        """As the port has it, but for the faults."""
        return self._read("get", key, lambda: self._store.get(key))

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it, but for the faults."""
        return self._read("get_range", key, lambda: self._store.get_range(key, position, size))

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """As the port has it; a call of `get_range`."""
        yield self.get_range(key, position, size)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """As the port has it, but for the faults."""
        fault = self._begin("list", prefix)
        if fault is not Fault.LOST_AFTER:
            yield from self._store.list(prefix, after=after)
            return
        everything = [*self._store.list(prefix, after=after)]
        yield from everything[: len(everything) // 2]
        raise _lost("list", prefix)

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it, but for the faults."""
        self._do("delete", keys[0] if keys else "", lambda: self._store.delete(keys))

    def _do(self, operation: str, key: str, call: Callable[[], None]) -> None:
        if self._begin(operation, key) is not Fault.LOST_AFTER:
            call()
            return
        with suppress(StoreError):  # an error is an answer, too
            call()
        raise _lost(operation, key)

    def _read(self, operation: str, key: str, call: Callable[[], bytes]) -> bytes:
        fault = self._begin(operation, key)
        if fault is Fault.LOST_AFTER:
            raise _lost(operation, key)
        data = call()
        match fault:
            case Fault.HALF:
                return data[: len(data) // 2]
            case Fault.OTHER_BYTES:
                return self._with_a_flip(data)
        return data

    def _begin(self, operation: str, key: str) -> Fault | None:
        """The fault of this call. Raises those that come before the store has the request."""
        with self._lock:
            fault = self.script(operation, key)
            if fault is None:
                return None
            assert fault in POSSIBLE[operation], f"{fault} of {operation}"
            self.happened.append(Happened(operation, key, fault))
        match fault:
            case Fault.LOST_BEFORE:
                raise _lost(operation, key)
            case Fault.THROTTLED:
                raise StoreThrottled(key, operation, "status 503 SlowDown")
            case Fault.DENIED:
                raise StoreDenied(key, operation, "status 403 AccessDenied")
            case Fault.SLOW:
                self._sleep()
            case Fault.OBJECT_GONE:
                self._store.delete([key])
        return fault

    def _with_a_flip(self, data: bytes) -> bytes:
        if not data:
            return data
        with self._lock:
            at, bit = self._flips.randrange(len(data)), self._flips.randrange(8)
        return data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]


def _lost(operation: str, key: str) -> StoreError:
    return StoreAway(key, operation, "the connection ended before the answer did")


def in_order(*faults: Fault | None) -> Script:
    """One for each call, in order; the calls after them succeed."""
    left = iter(faults)
    return lambda _operation, _key: next(left, None)


def of_calls(operation: str, *faults: Fault | None, key_has: str = "") -> Script:
    """One for each call of an operation, of keys that have a text in them; all others succeed."""
    left = iter(faults)

    def script(called: str, key: str) -> Fault | None:
        return next(left, None) if called == operation and key_has in key else None

    return script


def always(fault: Fault, *operations: str) -> Script:
    """A fault of each call of these operations; of all, without any."""
    return lambda called, _key: fault if called in (operations or OPERATIONS) else None


def by_seed(seed: int, rate: float, faults: frozenset[Fault] = _ANYWHERE) -> Script:
    """Faults of about `rate` of all calls, of those given that the operation can have."""
    rng = random.Random(seed)

    def script(operation: str, _key: str) -> Fault | None:
        possible = sorted(faults & POSSIBLE[operation], key=lambda each: each.value)
        drawn = rng.random() < rate
        return rng.choice(possible) if drawn and possible else None

    return script
