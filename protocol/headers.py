"""Request and response headers, by hand: they are read before anything is known of the peer.

A request header is key, version, correlation id and client id; flexible versions add a section of
tagged fields, which is stepped over under its cap. The client id keeps its old form in both. A
response header is the correlation id, and an empty tag section in flexible versions; ApiVersions
never has one, since the client cannot know yet what we speak (KIP-511).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct, error
from typing import NamedTuple

from protocol.api import Api
from protocol.errors import DecodeError
from protocol.text import AS_JAVA
from protocol.wire import MAX_TAGS, TAG_COST, skip_tags

API_VERSIONS_KEY = 18

_FIXED = Struct(">iih")  # key and version as one number, correlation id, client id's length
_CORRELATION = Struct(">i")

Versions = Mapping[int, bool]  # key << 16 | version: whether it is flexible


class RequestHeader(NamedTuple):
    """A request's header; the body starts at `body_position` of the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


class UnsupportedVersion(DecodeError):  # noqa: N818
    """A request of an API or version that is not served.

    For ApiVersions (`is_api_versions`) the answer is version 0 with UNSUPPORTED_VERSION; for all
    else the connection closes, as the client has received the served versions.
    """

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None
    ) -> None:
        super().__init__(f"version {api_version} of API {api_key} is not served")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id

    @property
    def is_api_versions(self) -> bool:
        """True for the one request that is answered all the same."""
        return self.api_key == API_VERSIONS_KEY


def versions_of(apis: Iterable[Api]) -> Versions:
    """Return the look-up that `parse_request_header` wants: every (key, version) of the APIs."""
    return {
        api.key << 16 | version: api.is_flexible(version)
        for api in apis
        for version in range(api.min_version, api.max_version + 1)
    }


def parse_request_header(frame: memoryview, versions: Versions) -> RequestHeader:
    """Read the header at the start of a frame.

    Raises UnsupportedVersion for what `versions` does not hold, DecodeError for damage.
    """
    try:
        key_and_version, correlation_id, size = _FIXED.unpack_from(frame)
        position = 10
        client_id = None
        if size >= 0:
            position += size
            if position > len(frame):
                raise DecodeError("truncated in the client id", 10)
            client_id = str(frame[10:position], "utf-8", AS_JAVA)
        elif size != -1:
            raise DecodeError(f"a client id of {size} bytes", 8)
        flexible = versions.get(key_and_version)
        if flexible:
            tags = frame[position]
            position += 1
            if tags:
                position, _ = skip_tags(frame, position, tags, MAX_TAGS * TAG_COST)
    except (error, IndexError, UnicodeDecodeError) as damage:
        raise DecodeError(f"request header: {damage}", 0) from None
    key, version = key_and_version >> 16, key_and_version & 0xFFFF
    if flexible is None:
        signed = version - 0x10000 if version > 0x7FFF else version
        raise UnsupportedVersion(key, signed, correlation_id, client_id)
    return RequestHeader(key, version, correlation_id, client_id, position)


def response_header(api: Api, version: int, correlation_id: int) -> bytes:
    """Return the 4 or 5 bytes in front of an answer's body."""
    header = _CORRELATION.pack(correlation_id)
    if version >= api.flexible_from and api.key != API_VERSIONS_KEY:
        return header + b"\0"
    return header


def request_header_bytes(
    api: Api, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return the header in front of a request's body, as a client writes it."""
    name = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(name)
    fixed = _FIXED.pack(api.key << 16 | version, correlation_id, size)
    return fixed + name + (b"\0" if api.is_flexible(version) else b"")
