"""One HTTP request and one response as the pages and the API see them, without the HTTP library."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

JSON = "application/json; charset=utf-8"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Request(NamedTuple):
    """A request. Header values are None when they were not sent.

    The path is as it was sent, percent-encoded: decode the parts after splitting it.
    """

    method: str
    path: str
    query: str
    host: str | None = None
    origin: str | None = None
    authorization: str | None = None
    body: bytes = b""
    address: str = ""
    """Address of the client."""
    is_tls: bool = False
    certificate: bytes | None = None
    """The client's, in DER, when it was asked for one and it is trusted."""


class Response(NamedTuple):
    """A response."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = NO_HEADERS


class ApiError(Exception):
    """A refusal: status, a stable code, and a sentence with what was wrong and what to do."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        """`code` is one of a closed set of words: it is a metric label, too."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers

    def response(self) -> Response:
        """As JSON."""
        content = {"error": {"code": self.code, "message": self.message}}
        return Response(self.status, JSON, rendered(content), self.headers)


def rendered(value: object) -> bytes:
    """A value as JSON text. Long lists are rendered piece by piece: other threads have their turn.

    (One call would keep the interpreter to itself until the last byte.)
    """
    return "".join([*_pieces(value), "\n"]).encode()


def _pieces(value: object) -> list[str]:
    if isinstance(value, Mapping):
        parts: list[str] = []
        for name, each in value.items():
            parts += [", " if parts else "{", json.dumps(name), ": ", *_pieces(each)]
        return [*parts, "}"] if parts else ["{}"]
    if isinstance(value, list) and value and isinstance(value[0], Mapping | list):
        parts = []
        for each in value:
            parts += [", " if parts else "[", json.dumps(each, allow_nan=False)]
        return [*parts, "]"]
    return [json.dumps(value, allow_nan=False)]
