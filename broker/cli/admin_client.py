"""Client of a running broker's admin API for commands: JSON over HTTP, mistakes in one line.

The broker's address and the token for changes are options of every such command, and environment
variables. Exit status: 1 when the broker refuses, 2 when none answers."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from functools import wraps
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlencode

import click

from broker.cli.main import CommandFailed
from broker.cli.probe import ADVICE, LOOPBACK, parse_address

if TYPE_CHECKING:
    from broker.cli.security.client_properties import ClientProperties

DEFAULT_ADDRESS = "127.0.0.1:9404"
TIMEOUT_SECONDS = 60
STILL_READING, ATTEMPTS = "still_reading", 30
MAX_ANSWER_BYTES = 256 * 1024 * 1024
REFUSED, NO_ANSWER = 1, 2

Answer: TypeAlias = dict[str, Any]
Parameters: TypeAlias = Mapping[str, object]


class AdminError(CommandFailed):
    """The broker refused, or there is none; the text says what to do."""

    def __init__(self, message: str, status: int = REFUSED, code: str = "") -> None:
        """`code` is the API's word for the refusal."""
        super().__init__(message, status)
        self.code = code


class HttpAnswer(NamedTuple):
    """An answer as it came."""

    status: int
    body: bytes


class AdminPort:
    """The HTTP port of one broker."""

    def __init__(
        self, address: str, token: str | None, client: "ClientProperties | None" = None
    ) -> None:
        """Connects to nobody yet. AdminError when `address` is no HOST:PORT.

        A token comes before the user and password of `client`.
        """
        self.address = address
        self._token = token
        self._login = None if client is None or token else client.login
        try:
            self._host, self._port, is_tls = parse_address(address)
        except ValueError as error:
            raise AdminError(f"--http {error}", NO_ANSWER) from error
        self._tls = client.tls() if client is not None and is_tls else None
        if self._login is not None and not (is_tls or self._host in LOOPBACK):
            raise AdminError(
                "a password is sent by https only: --http https://HOST:PORT", NO_ANSWER
            )

    def get(self, path: str, /, **parameters: object) -> Answer:
        """The answer to a question; AdminError."""
        for _ in range(ATTEMPTS):
            try:
                return self._ask("GET", path, parameters)
            except AdminError as error:
                if error.code != STILL_READING:
                    raise
                last = error
        raise last

    def text(self, path: str) -> str:
        """A page that is text, whatever its status; AdminError when nobody answers."""
        return self._exchange("GET", path).body.decode(errors="replace")

    @property
    def secrets(self) -> list[str]:
        """Values that must not be shown to others."""
        password = self._login[1] if self._login else ""
        return [each for each in (self._token, password) if each]

    def of_topic(self, topic: str, path: str, /, **parameters: object) -> Answer:
        """The answer to a question about a topic; after a near miss the error names the right
        topic. Raises AdminError.
        """
        try:
            return self.get(f"/api/topics/{in_path(topic)}/{path}", **parameters)
        except AdminError as error:
            if error.code != "unknown_topic":
                raise
        raise AdminError(self._no_such_topic(topic))

    def post(self, path: str, /, **parameters: object) -> Answer:
        """The outcome of a change; AdminError."""
        return self._ask("POST", path, parameters)

    def _no_such_topic(self, topic: str) -> str:
        names = [each["topic"] for each in self.get("/api/topics")["topics"]]
        near = get_close_matches(topic, names, 1)
        hint = f": did you mean {near[0]}?" if near else ""
        return f"the broker at {self.address} has no topic {topic!r}{hint}"

    def _ask(self, method: str, path: str, parameters: Parameters) -> Answer:
        query = urlencode(
            {name: _text(value) for name, value in parameters.items() if value is not None}
        )
        return self._understood(self._exchange(method, f"{path}?{query}" if query else path))

    def _exchange(self, method: str, target: str) -> HttpAnswer:
        """One request and its whole answer; AdminError when there is none."""
        headers, connection = self._headers(), self._connection()
        try:
            connection.request(method, target, headers=headers)
            response = connection.getresponse()
            return HttpAnswer(response.status, response.read(MAX_ANSWER_BYTES))
        except HTTPException as error:
            raise self._is_no_http(error) from error
        except ConnectionResetError as error:
            raise self._is_no_http(error) from error
        except OSError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise AdminError(
                    f"the certificate of {self.address} is not trusted: --ca-file FILE, or "
                    "ssl.truststore.location in the file of --command-config, names its authority",
                    NO_ANSWER,
                ) from error
            raise AdminError(
                f"no broker answers at {self.address} ({error.strerror or error}): start one, or "
                "say where its HTTP port is with --http HOST:PORT or HOROLOG_HTTP",
                NO_ANSWER,
            ) from error
        finally:
            connection.close()

    def _headers(self) -> dict[str, str]:
        if self._token:
            return {"Authorization": f"Bearer {self._token}"}
        if self._login is None:
            return {}
        given = b64encode(":".join(self._login).encode()).decode()
        return {"Authorization": f"Basic {given}"}

    def _connection(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        from http.client import HTTPSConnection

        return HTTPSConnection(self._host, self._port, timeout=TIMEOUT_SECONDS, context=self._tls)

    def _understood(self, response: HttpAnswer) -> Answer:
        try:
            content = json.loads(response.body)
            refusal = None if response.status == 200 else _refusal(content, response.status)
        except (ValueError, KeyError, TypeError) as failed:
            raise AdminError(
                f"what answers at {self.address} is no Horolog (status {response.status}, no "
                "JSON): --http wants the broker's HTTP port, horolog.http.listener",
                NO_ANSWER,
            ) from failed
        if refusal is not None:
            raise refusal
        answer: Answer = content
        return answer

    def _is_no_http(self, error: Exception) -> AdminError:
        return AdminError(
            f"what answers at {self.address} does not speak HTTP ({type(error).__name__}): --http "
            "wants the broker's HTTP port, horolog.http.listener, not the one for clients; "
            f"{ADVICE}",
            NO_ANSWER,
        )


def in_path(name: str) -> str:
    """A name as one part of a path, whatever is in it.

    Dots too: `..` in a path is taken away by who forwards it.
    """
    return quote(name, safe="").replace(".", "%2E") if name in {".", ".."} else quote(name, safe="")


def live(command: Callable[..., int]) -> Callable[..., int]:
    """Gives a command `port`, where the broker answers, and `as_json`, with their options."""

    @click.option(
        "--http",
        "address",
        metavar="HOST:PORT",
        envvar="HOROLOG_HTTP",
        default=DEFAULT_ADDRESS,
        show_default=True,
        show_envvar=True,
        help="Address of the broker's HTTP port; https://HOST:PORT for one with TLS.",
    )
    @click.option(
        "--ca-file",
        metavar="FILE",
        envvar="HOROLOG_HTTP_CA_FILE",
        show_envvar=True,
        help="Authorities, in PEM, of a broker with TLS.",
    )
    @click.option(
        "--command-config",
        metavar="FILE",
        envvar="HOROLOG_COMMAND_CONFIG",
        show_envvar=True,
        help="Settings of a client, as Kafka's tools take them: ssl.*, sasl.jaas.config "
        "with the user and password to ask as.",
    )
    @click.option(
        "--token-file",
        metavar="FILE",
        envvar="HOROLOG_HTTP_TOKEN_FILE",
        show_envvar=True,
        help="File with the broker's token (horolog.http.token.file); or set HOROLOG_HTTP_TOKEN.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
    @wraps(command)
    def with_port(
        *,
        address: str,
        token_file: str | None,
        ca_file: str | None,
        command_config: str | None,
        **rest: object,
    ) -> int:
        from broker.cli.security.client_properties import read_client_properties

        client = read_client_properties(command_config, ca_file)
        return command(port=AdminPort(address, _token(token_file), client), **rest)

    return with_port


def print_json(answer: Answer) -> int:
    """The answer as it came."""
    click.echo(json.dumps(answer, indent=2))
    return 0


def _refusal(content: Mapping[str, Mapping[str, object]], status: int) -> AdminError:
    """The refusal in an answer; KeyError, TypeError when that is none of a Horolog."""
    code, message = content["error"]["code"], content["error"]["message"]
    if not (isinstance(code, str) and isinstance(message, str)):
        raise TypeError(code)
    if status in {401, 403} and code in {"token", "no_token_set", "identity"}:
        message += "; the command takes it from --token-file FILE or HOROLOG_HTTP_TOKEN"
    return AdminError(message, NO_ANSWER if status >= 500 else REFUSED, code)


def _token(path: str | None) -> str | None:
    import os
    from pathlib import Path

    if path is None:
        return _stated(os.environ.get("HOROLOG_HTTP_TOKEN", ""))
    try:
        return _strongest(Path(path).read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise AdminError(f"--token-file {path}: {error}") from error


def _stated(text: str) -> str:
    """The token in a variable, without the line end of a file that it may come from."""
    token = text.strip()
    if not (token.isascii() and token.isprintable()):
        raise AdminError("HOROLOG_HTTP_TOKEN has signs or line ends that no token has")
    return token


def _strongest(text: str) -> str:
    """Of the tokens in a file, each behind its role or alone, one that may most."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    by_role = {role: token for role, colon, token in map(_parted, lines) if colon}
    alone = next((line for line in lines if ":" not in line), "")
    return by_role.get("admin") or alone or by_role.get("operate") or by_role.get("read") or ""


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition(":")


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
