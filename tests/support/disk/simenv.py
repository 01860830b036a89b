"""Clock and randomness that a test holds in its hand, and the whole environment around them."""

import random
from uuid import UUID

from storage.env import Env
from tests.support.disk.simdisk import SimFileSystem


class SimClock:
    """Both clocks stand still until `advance`; `step` moves the wall clock alone."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic = 1000.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, ms: int) -> None:
        """Time passes."""
        self._now_ms += ms
        self._monotonic += ms / 1000

    def step(self, ms: int) -> None:
        """Sets the wall clock alone."""
        self._now_ms += ms


class SeededRng:
    """The same numbers for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uint64(self) -> int:
        return self._random.getrandbits(64)

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)

    def uuid(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)


def sim_env(seed: int = 0, fs: SimFileSystem | None = None, clock: SimClock | None = None) -> Env:
    """An environment without a machine; give the file system of a crash to start again on it."""
    clock = clock or SimClock()
    return Env(clock, fs or SimFileSystem(clock=clock), SeededRng(seed))
