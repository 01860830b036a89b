"""Rate limit of connections by address: a number a second, and a burst of some seconds' worth.

One number per address, kept only while it tells something: the time at which the address would have
used up what it was given if it had kept to the rate. Used from the event loop.
"""

BURST_SECONDS = 10.0


class ArrivalRate:
    """The arrivals of all addresses; times in seconds of one monotonic clock."""

    __slots__ = ("_spent_until",)

    def __init__(self) -> None:
        """Nobody came yet."""
        self._spent_until: dict[str, float] = {}

    def __len__(self) -> int:
        """Addresses that are remembered."""
        return len(self._spent_until)

    def admits(self, address: str, now: float, per_second: int) -> bool:
        """True when one more may connect now, which is counted. 0 a second: no limit."""
        if not per_second:
            return True
        spent = max(self._spent_until.get(address, now), now)
        if spent - now > BURST_SECONDS:
            return False
        self._spent_until[address] = spent + 1 / per_second
        return True

    def forget(self, now: float) -> None:
        """Addresses that have not come for a while need no memory; call it now and then."""
        kept = {each: until for each, until in self._spent_until.items() if until > now}
        self._spent_until = kept
