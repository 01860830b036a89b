"""Limits on new connections of an address, in a second (KIP-612), by the windows of other rates.

A connection over the limit does not count; it is closed after the time that brings its address back
to the limit, so that clients which come again at once do not come often.
"""

from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

from broker.quotas.rate import WindowedRate
from broker.quotas.recent import Recent
from broker.quotas.table import CONNECTION_CREATION_RATE, IP, QuotaTable

if TYPE_CHECKING:
    from broker.quotas.enforcement import Throttled

MAX_RATES = 10_000  # addresses kept at one time; the one that came longest ago gives way


class ArrivalQuota:
    """The rates of all addresses that have a limit. Used on the event loop only."""

    def __init__(
        self,
        *,
        windows: int,
        window_ms: int,
        monotonic: Callable[[], float],
        throttled: "Throttled",
    ) -> None:
        """Nobody has a limit until `use`."""
        self._window_ms = window_ms
        self._monotonic = monotonic
        self._throttled = throttled
        self._bounds: dict[str | None, float] = {}
        self._rates = Recent[str, WindowedRate](
            partial(WindowedRate, windows, window_ms), MAX_RATES
        )

    def use(self, table: QuotaTable) -> None:
        """The limits from now on; of two spellings of an address, the smaller limit."""
        self._bounds = {}
        for entity, limits in table.entries.items():
            if entity[0][0] == IP and CONNECTION_CREATION_RATE in limits:
                name, bound = entity[0][1], limits[CONNECTION_CREATION_RATE]
                host = None if name is None else spelled(name)
                self._bounds[host] = min(bound, self._bounds.get(host, bound))

    @property
    def is_needed(self) -> bool:
        """False while no address has a limit."""
        return bool(self._bounds)

    def rest_ms(self, host: str) -> int:
        """0 for a connection that may come in, which is counted; else the time until it may."""
        address = spelled(host) if host else host  # a client that has gone already has none
        bound = self._bounds.get(address, self._bounds.get(None))
        if bound is None:
            return 0
        now_ms = self._monotonic() * 1000
        rate = self._rates.of(address)
        rate.add(1, now_ms)
        excess_ms = rate.excess_ms(bound, now_ms)
        if not excess_ms:
            return 0
        rate.add(-1, now_ms)
        rest_ms = max(1, min(round(excess_ms), self._window_ms))
        self._throttled.add(CONNECTION_CREATION_RATE, rest_ms)
        return rest_ms


def spelled(host: str) -> str:
    """An address as all its spellings are compared; IPv4 in IPv6 is IPv4.

    Raises ValueError for what is no address.
    """
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return str(address)
