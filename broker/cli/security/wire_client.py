"""Client of a broker over the Kafka protocol, for commands: one connection, one request at a time.

It connects as Kafka's tools do, with the client settings of `--command-config`: in the clear or by
TLS, and by SASL. Exit status: 1 when the broker refuses, 2 when none answers.
"""

import socket
from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from itertools import count
from typing import Any, NoReturn, TypeVar

import click

from broker.access.errors import AccessError, BrokerNotProven, LoginRefused
from broker.access.login import log_in
from broker.access.tls import connected
from broker.cli.admin_client import NO_ANSWER, REFUSED, TIMEOUT_SECONDS
from broker.cli.main import CommandFailed
from broker.cli.probe import parse_place
from broker.cli.security.client_properties import ClientProperties, read_client_properties
from protocol.api import Api
from protocol.apis import api_versions
from protocol.codec import decode, encode_bytes
from protocol.errors import DecodeError, ErrorCode
from protocol.headers import API_VERSIONS_KEY, request_header_bytes
from protocol.registry import api_of

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
CLIENT_ID = "horolog-cli"
MAX_ANSWER_BYTES = 256 * 1024 * 1024
MAX_LOGIN_ANSWER_BYTES = 1024 * 1024
_VERSIONS_VERSION = 3


T = TypeVar("T")


class WireClient:
    """A broker. Connects when it is first asked; raises CommandFailed for all that goes wrong."""

    def __init__(self, bootstrap: str, client: ClientProperties) -> None:
        """`bootstrap` is HOST:PORT."""
        self._bootstrap = bootstrap
        self._client = client
        self._numbers = count(1)
        self._limit = MAX_LOGIN_ANSWER_BYTES
        place = parse_place(bootstrap)
        if place is None:
            self._fail(f"--bootstrap {bootstrap!r} is no HOST:PORT")
        self._address = place

    def call(self, request: Any) -> Any:
        """The answer, in the newest version that both sides have."""
        connection, versions = self._opened
        api = api_of(type(request))
        theirs = versions.get(api.key)
        version = min(api.max_version, theirs.max_version) if theirs else -1
        if theirs is None or version < max(api.min_version, theirs.min_version):
            self._fail(f"the broker at {self._bootstrap} has no {api.name} that this command knows")
        return self._guarded(lambda: self._exchange(connection, api, request, version))

    def refuse(self, code: int, message: str | None = None) -> NoReturn:
        """The broker's error code is the outcome of the command."""
        raise CommandFailed(message or description_of(code), REFUSED)

    def close(self) -> None:
        """Ends the connection, if there is one."""
        if "_opened" in self.__dict__:
            self._opened[0].close()

    @cached_property
    def _opened(self) -> tuple[socket.socket, Mapping[int, Any]]:
        """The connection, logged in, and the versions of APIs by key."""
        return self._guarded(self._open)

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except BrokerNotProven as error:
            self._fail(f"the broker at {self._bootstrap} is not trusted: {error}")
        except AccessError as error:
            self._fail(str(error))
        except (OSError, DecodeError) as error:
            self._fail(
                f"no broker answers at {self._bootstrap} ({error}): is it HOST:PORT of a listener, "
                "and security.protocol in the file of --command-config that listener's?"
            )

    def _open(self) -> tuple[socket.socket, Mapping[int, Any]]:
        security = self._client.security
        connection = connected(*self._address, security, TIMEOUT_SECONDS)
        try:
            versions = self._versions(connection)
            if security.mechanism:
                self._log_in(connection, versions)
        except BaseException:
            connection.close()
            raise
        self._limit = MAX_ANSWER_BYTES
        return connection, versions

    def _versions(self, connection: socket.socket) -> Mapping[int, Any]:
        request = api_versions.ApiVersionsRequest(
            client_software_name=CLIENT_ID, client_software_version="1"
        )
        answer = self._exchange(connection, api_versions.API, request, _VERSIONS_VERSION)
        return {each.api_key: each for each in answer.api_keys}

    def _log_in(self, connection: socket.socket, versions: Mapping[int, Any]) -> None:
        def ask(request: Any) -> Any:
            api = api_of(type(request))
            theirs = versions[api.key].max_version if api.key in versions else 0
            return self._exchange(connection, api, request, min(api.max_version, theirs))

        try:
            log_in(ask, self._client.security)
        except LoginRefused as error:
            raise CommandFailed(str(error), REFUSED) from error

    def _exchange(self, connection: socket.socket, api: Api, request: Any, version: int) -> Any:
        header = request_header_bytes(api, version, next(self._numbers), CLIENT_ID)
        body = header + encode_bytes(request, version)
        connection.sendall(len(body).to_bytes(4, "big") + body)
        size = int.from_bytes(_received(connection, 4), "big")
        if size > self._limit:
            raise DecodeError(f"an answer of {size} bytes: that is no broker")
        flexible = api.is_flexible(version) and api.key != API_VERSIONS_KEY
        frame = memoryview(_received(connection, size))
        return decode(api.response, version, frame, 5 if flexible else 4)

    def _fail(self, text: str) -> NoReturn:
        raise CommandFailed(text, NO_ANSWER)


def description_of(code: int) -> str:
    """Kafka's text of an error code."""
    try:
        return ErrorCode(code).description
    except ValueError:
        return f"error {code}"


def wired(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command `client`, a WireClient, with its options."""

    @click.option(
        "--bootstrap",
        metavar="HOST:PORT",
        envvar="HOROLOG_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        help="Listener of the broker.",
    )
    @click.option(
        "--command-config",
        metavar="FILE",
        envvar="HOROLOG_COMMAND_CONFIG",
        show_envvar=True,
        help="Settings of a client, as Kafka's tools take them: security.protocol, sasl.*, ssl.*.",
    )
    @wraps(command)
    def with_client(*, bootstrap: str, command_config: str | None, **rest: object) -> int:
        client = WireClient(bootstrap, read_client_properties(command_config, None))
        try:
            return command(client=client, **rest)
        finally:
            client.close()

    return with_client


def _received(connection: socket.socket, size: int) -> bytes:
    pieces = bytearray()
    while len(pieces) < size:
        piece = connection.recv(min(size - len(pieces), 1 << 20))
        if not piece:
            raise ConnectionError("it closed the connection")
        pieces += piece
    return bytes(pieces)
