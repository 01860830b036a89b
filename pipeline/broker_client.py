"""A blocking connection to a broker: typed requests of `protocol.apis`, one at a time.

The version of each API is the highest that both sides have, or less where the caller wants that.
Whatever goes wrong is a `BrokerRefused` that names the broker and the request; a missing right or a
failed log-in is a `NotAllowed`, a connection that fails is a `NoConnection`. A session that ends
(KIP-368) is renewed between two requests.
"""

import itertools
import math
import socket
import time
from collections.abc import Callable
from typing import Any, Self, TypeVar

from broker.access.errors import BadSetting, BrokerNotProven, LoginRefused
from broker.access.login import log_in
from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from broker.access.tls import connected
from pipeline.errors import BadOption, BrokerRefused, NoConnection, NotAllowed, NotNow
from protocol.api import Api
from protocol.apis.api_versions import ApiVersionsRequest
from protocol.codec import decode, encode
from protocol.errors import DecodeError, ErrorCode
from protocol.frames import MAX_FRAME_BYTES
from protocol.headers import API_VERSIONS_KEY, request_header_bytes
from protocol.registry import api_of

T = TypeVar("T")

TIMEOUT_SECONDS = 30
MOST_ANSWER_BYTES = 8 * MAX_FRAME_BYTES
CLIENT_ID = "horolog-spark"
_RENEWED_SHARE = 0.8
_RIGHTS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


class BrokerClient:
    """One connection; the caller closes it. Not for several threads at once."""

    def __init__(
        self, address: str, security: ClientSecurity = IN_THE_CLEAR, *,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:  # fmt: skip
        """Connect to HOST:PORT, learn its versions and log in."""
        self.address = address
        self.security = security
        self._renew_at = math.inf
        host, port = split_address(address)
        try:
            self._socket = connected(host, port, security, timeout_seconds)
        except OSError as error:
            raise NoConnection(f"no broker answers at {address}: {error}") from None
        except BadSetting as error:
            raise BadOption(str(error)) from None
        except BrokerNotProven as error:
            raise BrokerRefused(str(error)) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._numbers = itertools.count(1)
        self._versions: dict[int, tuple[int, int]] = {API_VERSIONS_KEY: (0, 0)}
        try:
            answer = self.call(ApiVersionsRequest())
            self._versions |= {
                each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
            }
            self._log_in()
        except BaseException:
            self.close()
            raise

    def has(self, request: type[Any]) -> bool:
        """True when the broker serves the API of a request."""
        return api_of(request).key in self._versions

    def call(self, request: Any, *, at_most: int | None = None) -> Any:
        """The answer to a request, of version `at_most` or less. BrokerRefused."""
        return self.receive(*self.send(request, at_most=at_most))

    def send(self, request: Any, *, at_most: int | None = None) -> tuple[Api, int, int]:
        """Send a request; `receive` wants what comes back. Answers come in order."""
        if time.monotonic() >= self._renew_at:
            self._log_in()
        api = api_of(type(request))
        version = self._version(api, at_most)
        number = next(self._numbers)
        header = request_header_bytes(api, version, number, CLIENT_ID)
        parts = [header, *encode(request, version)]
        size = sum(map(len, parts))
        try:
            self._socket.sendall(b"".join((size.to_bytes(4, "big"), *parts)))
        except OSError as error:
            raise self._lost(api, error) from None
        return api, version, number

    def receive(self, api: Api, version: int, number: int) -> Any:
        """The answer to a request that was sent."""
        try:
            size = int.from_bytes(self._exactly(4), "big")
            if not 4 <= size <= MOST_ANSWER_BYTES:
                raise self._refused(api, f"an answer of {size} bytes")
            answer = memoryview(self._exactly(size))
            if int.from_bytes(answer[:4], "big") != number:
                raise self._refused(api, "the answer belongs to another request")
            begin = 5 if api.is_flexible(version) and api.key != API_VERSIONS_KEY else 4
            return decode(api.response, version, answer, begin)
        except OSError as error:
            raise self._lost(api, error) from None
        except DecodeError as error:
            raise self._refused(api, error) from None

    def check(self, code: int, what: str, right: str) -> None:
        """As the function `check`; a refusal for want of a right names it and the user."""
        self.check_rights(code, what, right)
        check(code, f"{self.address}, {what}")

    def check_rights(self, code: int, what: str, right: str) -> None:
        """NotAllowed for the want of a right; all other codes pass."""
        if code in _RIGHTS:
            raise NotAllowed(
                f"{self.address}, {what}: {ErrorCode(code).name}: {self.security.user} has not "
                f"the right {right}"
            )

    def close(self) -> None:
        """Let the connection go."""
        self._socket.close()

    def __enter__(self) -> Self:
        """Connected already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _log_in(self) -> None:
        """Log in where the protocol asks for it, or once more before the session ends."""
        self._renew_at = math.inf
        if not self.security.mechanism:
            return
        try:
            lifetime_ms = log_in(self.call, self.security)
        except LoginRefused as error:
            raise NotAllowed(
                f"{self.address} refuses {self.security.user} by {self.security.mechanism}: {error}"
            ) from None
        except BadSetting as error:
            raise BadOption(str(error)) from None
        except BrokerNotProven as error:
            raise NotAllowed(f"{self.address} is not trusted: {error}") from None
        if lifetime_ms:
            self._renew_at = time.monotonic() + lifetime_ms / 1000 * _RENEWED_SHARE

    def _version(self, api: Api, at_most: int | None) -> int:
        low, high = self._versions.get(api.key, (1, 0))
        version = min(high, api.max_version, api.max_version if at_most is None else at_most)
        if version < max(low, api.min_version):
            raise self._refused(api, "the broker serves no version of it that we have")
        return version

    def _exactly(self, size: int) -> bytearray:
        whole = bytearray(size)
        view, at = memoryview(whole), 0
        while at < size:
            count = self._socket.recv_into(view[at:])
            if not count:
                raise ConnectionError(
                    "the broker closed the connection (does it ask for TLS or a login?)"
                )
            at += count
        return whole

    def _lost(self, api: Api, why: object) -> NoConnection:
        return NoConnection(f"{self.address}, {api.name}: {why}")

    def _refused(self, api: Api, why: object) -> BrokerRefused:
        return BrokerRefused(f"{self.address}, {api.name}: {why}")


def split_address(address: str) -> tuple[str, int]:
    """Host and port of the first of HOST:PORT[,HOST:PORT…]. BadOption."""
    host, colon, port = address.split(",", maxsplit=1)[0].strip().rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 1 << 16):
        raise BadOption(f"{address!r} is no HOST:PORT")
    return host.strip("[]"), int(port)


def connect(bootstrap: str, security: ClientSecurity = IN_THE_CLEAR) -> BrokerClient:
    """A connection to the first of the listed brokers that answers. BrokerRefused."""
    refusal: BrokerRefused | None = None
    for address in bootstrap.split(","):
        try:
            return BrokerClient(address.strip(), security)
        except BrokerRefused as error:
            refusal = error
    raise refusal or BrokerRefused("no broker is named")


def ask_one(
    bootstrap: str, ask: Callable[[BrokerClient], T], security: ClientSecurity = IN_THE_CLEAR
) -> T:
    """The answer of one of the listed brokers; of another one when that goes away meanwhile.

    BrokerRefused.
    """
    left = len(bootstrap.split(","))
    while True:
        with connect(bootstrap, security) as client:
            try:
                return ask(client)
            except NoConnection:
                if not left:
                    raise
        left -= 1


def check(code: int, what: str) -> None:
    """BrokerRefused unless the code is 0, NotNow where Kafka's clients try again.

    `what` was asked for.
    """
    if code:
        is_known = code in set(ErrorCode)
        name = ErrorCode(code).name if is_known else str(code)
        kind = NotNow if is_known and ErrorCode(code).retriable else BrokerRefused
        raise kind(f"{what}: {name}")
