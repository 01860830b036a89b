"""The names by which a listener is asked, and the pages that ask (operations C2).

- The `Host` of a request must be a name of this broker: a web page whose own name resolves to this
  address (DNS rebinding) is refused. So is a request that a page of another origin sends.
- Probes need no name. The scrape and the page need a name of this broker or one without a dot:
  public DNS has no such names, and containers use them for each other.

Who asks, and what it may, is said by `identity.py` and `caller.py`.
"""

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from broker.http.port.messages import ApiError, Request

READS = ("GET", "HEAD")
_NAMES_KEY = "horolog.http.hosts"


class AccessControl:
    """The rules of one listener."""

    def __init__(self, host: str, names: Collection[str]) -> None:
        """`host`: the listener's, as it is set. `names`: further ones it is reached by."""
        self._any_address = not (host == "localhost" or is_loopback(host))
        self._names = {"localhost", *(each.lower() for each in (*names, host) if each)}

    def check(self, request: Request) -> None:
        """ApiError when the request comes by a foreign name, or from a foreign page."""
        self._check_host(request.host)
        self._check_origin(request)

    def check_reader(self, request: Request) -> None:
        """ApiError when a page that is no API cannot be read under the name it was asked by.

        Who sends no name at all (HTTP 1.0) is no browser.
        """
        if request.host is None:
            return
        host = _host_of(request.host)
        if host is not None and "." not in host and ":" not in host:
            return
        self._check_host(request.host)

    def _check_host(self, header: str | None) -> None:
        host = _host_of(header or "")
        if host is None:
            raise ApiError(400, "bad_host", f"The Host header {header!r} is no host and port")
        if host in self._names or is_loopback(host) or (self._any_address and _is_address(host)):
            return
        raise ApiError(
            403,
            "foreign_host",
            f"This broker does not go by the name {host!r}: use its address, or add the name to "
            f"{_NAMES_KEY}",
        )

    def _check_origin(self, request: Request) -> None:
        origin = request.origin
        if origin is None or _place_of(origin) == (request.host or "").lower():
            return
        raise ApiError(
            403, "foreign_origin", f"A page of {origin!r} asked for this: only our own pages may"
        )


def _host_of(header: str) -> str | None:
    """The host of a Host header without its port, in lower case; None when it is no such header."""
    try:
        parts = urlsplit(f"//{header}")
        found, _ = parts.hostname, parts.port
    except ValueError:
        return None
    if not found or parts.path or parts.query or parts.username is not None:
        return None
    return found.removesuffix(".")


def _place_of(origin: str) -> str | None:
    """Host and port of an Origin header, in lower case; None when it is no such header."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """True for an address of the machine itself."""
    return _is_address(host) and ip_address(host).is_loopback
