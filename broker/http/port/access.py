"""Access control of the HTTP API: names, origins and the token (operations C2).

- The `Host` of a request must be a name of this broker: a web page whose own name resolves to this
  address (DNS rebinding) is refused. So is a request that a page of another origin sends.
- On a loopback listener every user of the machine may read. On any other the API needs the token.
- Changes need the token, always; but a broker with a test clock (`--test-clock`) takes them on
  loopback without one, since tests are its purpose.

Probes need neither. The scrape and the page need no token, only a name of this broker or one
without a dot: public DNS has no such names, and containers use them for each other.
"""

import hmac
from collections.abc import Callable, Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from broker.http.port.messages import ApiError, Request

READS = ("GET", "HEAD")
_TOKEN_KEY = "horolog.http.token.file"  # noqa: S105 - the name of a setting
_NAMES_KEY = "horolog.http.hosts"


class AccessControl:
    """The rules of one listener."""

    def __init__(
        self, host: str, names: Collection[str], token: Callable[[], str | None], *, is_test: bool
    ) -> None:
        """`host`: the listener's, as it is set. `names`: further ones it is reached by.

        `token()` gives the one in force.
        """
        self._is_loopback = host == "localhost" or _is_loopback(host)
        self._any_address = not self._is_loopback
        self._names = {"localhost", *(each.lower() for each in (*names, host) if each)}
        self._token = token
        self._is_test = is_test

    def check(self, request: Request) -> None:
        """ApiError when the request is not let in."""
        self._check_host(request.host)
        self._check_origin(request)
        if self._needs_token(request):
            self._check_token(request.authorization)

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
        if host in self._names or _is_loopback(host) or (self._any_address and _is_address(host)):
            return
        raise ApiError(
            403,
            "foreign_host",
            f"This broker does not go by the name {host!r}: use its address, or add the name to "
            f"{_NAMES_KEY}",
        )

    def _check_origin(self, request: Request) -> None:
        origin = request.origin
        if origin is None or urlsplit(origin).netloc.lower() == (request.host or "").lower():
            return
        raise ApiError(
            403, "foreign_origin", f"A page of {origin!r} asked for this: only our own pages may"
        )

    def _needs_token(self, request: Request) -> bool:
        if not self._is_loopback:
            return True
        return request.method not in READS and not self._is_test

    def _check_token(self, authorization: str | None) -> None:
        token = self._token()
        if token is None:
            raise ApiError(
                403,
                "no_token_set",
                f"This needs a token, and none is set: name a file in {_TOKEN_KEY}",
            )
        kind, _, given = (authorization or "").partition(" ")
        if kind.lower() == "bearer" and _is_same(given.strip(), token):
            return
        raise ApiError(
            401,
            "token",
            "This needs the header 'Authorization: Bearer TOKEN' with the token of this broker",
            {"WWW-Authenticate": 'Bearer realm="horolog"'},
        )


def _is_same(given: str, token: str) -> bool:
    """Compared as bytes, whatever was sent; in a time that tells nothing."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


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


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_loopback
