"""A store in memory that is at fault at times, by chance: what twins of `tier_twins` have."""

import random
from enum import Enum

from storage.tier.names import RECORDS
from tests.support.tier.faulty_store import POSSIBLE, Fault, FaultyStore
from tests.support.tier.memory_store import MemoryStore

FAULTS = sorted(set(Fault) - {Fault.SLOW}, key=lambda each: each.value)


class Weather(Enum):
    """States of the store."""

    FAIR = 0
    FAULTY = 1
    AWAY = 2


class StoreWeather:
    """The store, and its state."""

    def __init__(self, dice: random.Random) -> None:
        """It is fair."""
        self._dice = dice
        self._calm = dice.choice((0.2, 0.7, 0.9))
        self._kept: dict[str, bytes] = {}
        self._spoilt = ""
        self.state = Weather.FAIR
        self.objects = MemoryStore()
        """Its objects, without faults."""
        self.store = FaultyStore(self.objects, self._fault)

    @property
    def is_fair(self) -> bool:
        return self.state is Weather.FAIR

    def change(self) -> None:
        """The store falls ill, or is well again."""
        if not self.is_fair:
            self.clear_up()
        else:
            self.state = self._dice.choice((Weather.FAULTY, Weather.FAULTY, Weather.AWAY))

    def clear_up(self) -> None:
        """The faults end; objects that were lost are there again."""
        self.state = Weather.FAIR
        for key, data in self._kept.items():
            if key not in self.objects.objects:
                self.objects.put_new(key, data)
        self.forget_lost()

    def forget_lost(self) -> None:
        """Objects that were lost stay so."""
        self._kept.clear()

    def _fault(self, operation: str, key: str) -> Fault | None:
        if self.state is Weather.AWAY:
            return Fault.LOST_BEFORE
        if self.is_fair or self._dice.random() < self._calm:
            return None
        possible = [each for each in FAULTS if each in POSSIBLE[operation]]
        fault = self._dice.choice(possible)
        if fault is Fault.OBJECT_GONE:
            if not key.endswith(RECORDS):
                return None  # without indexes arrivals are estimates, without manifests all stops
            if key in self.objects.objects:
                self._kept[key] = self.objects.objects[key]
        if fault in {Fault.OTHER_BYTES, Fault.HALF}:
            if self._spoilt == key:
                return None  # spoilt twice is damage at rest: arrivals are then estimated
            self._spoilt = key
        return fault
