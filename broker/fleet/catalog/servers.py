"""Servers of a database, tried one after the other: each has its own time, so that one which is
silent does not take that of the next.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

Connection = Any
"""The library's, which has no types."""
CONNECT_SECONDS = 5.0


class Servers:
    """Used from one event loop, by one task at a time."""

    def __init__(self, url: str) -> None:
        """Nothing is connected."""
        self._urls = each_server(url)
        """In the order of tries: the server that was there last comes first."""

    async def connect(
        self, seconds: float = CONNECT_SECONDS, settings: Mapping[str, str] | None = None
    ) -> Connection:
        """A connection to the first one that takes changes. Errors as of the library.

        `seconds`: for each.
        """
        import asyncpg

        errors = list[Exception]()
        for url in list(self._urls):
            try:
                connection = await asyncpg.connect(
                    url, timeout=seconds, server_settings=settings, target_session_attrs="primary"
                )
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                errors.append(error)
            else:
                self._urls.sort(key=lambda each: each != url)
                return connection
        raise _most_telling(errors)


def each_server(url: str) -> list[str]:
    """A URL for each server that a URL names."""
    parts = urlsplit(url)
    user, at, places = parts.netloc.rpartition("@")
    if places:
        each = [parts._replace(netloc=f"{user}{at}{place}") for place in places.split(",")]
        return [urlunsplit(one) for one in each]
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts, ports = (options.get(name, "").split(",") for name in ("host", "port"))
    if len(hosts) == 1 or len(ports) not in {1, len(hosts)}:  # the library refuses the latter
        return [url]
    ports = ports if len(ports) > 1 else ports * len(hosts)
    named = [
        {**options, "host": host, "port": port} for host, port in zip(hosts, ports, strict=True)
    ]
    return [f"{parts.scheme}://{parts.path}?{urlencode(_filled(one))}" for one in named]


def _filled(options: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}


def _most_telling(errors: Sequence[Exception]) -> Exception:
    """A refusal, rather than a server that is away; that, rather than one that takes no changes."""
    import asyncpg

    def rank(error: Exception) -> int:
        if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
            return 2
        return 1 if isinstance(error, OSError) else 0

    return min(errors, key=rank)
