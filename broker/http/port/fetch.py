"""One document of another server, by https: bounded in time, in size, and in where it comes from.

aiohttp's client, since that is a dependency for the HTTP port already, and its time limit holds
for all of a request: name, connection, handshake, headers and body. A blocking library has one for
each read, so a server that sends a byte now and then would hold a thread for ever.
"""

import ssl
from urllib.parse import urljoin, urlsplit

import aiohttp

SECONDS = 5.0
MOST_REDIRECTS = 3
_MOVED = (301, 302, 303, 307, 308)


class FetchFailed(Exception):  # noqa: N818 - an outcome, not a fault
    """There is no document; the text is for the operator."""


async def fetch(url: str, most_bytes: int, trusted: ssl.SSLContext | None) -> bytes:
    """The document at `url`. Raises FetchFailed.

    `trusted` checks the server's certificate; None: by the authorities of the system. A redirect is
    followed on the same server alone.
    """
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    try:
        async with aiohttp.ClientSession(
            timeout=timeout,
            headers=headers,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            for _ in range(MOST_REDIRECTS + 1):
                found = await _get(session, url, most_bytes, trusted)
                if isinstance(found, bytes):
                    return found
                url = found
    except TimeoutError:
        raise FetchFailed(f"no whole answer within {SECONDS:g} seconds") from None
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise FetchFailed(f"{type(error).__name__}: {error}") from error
    raise FetchFailed(f"more than {MOST_REDIRECTS} redirects")


async def _get(
    session: aiohttp.ClientSession, url: str, most_bytes: int, trusted: ssl.SSLContext | None
) -> bytes | str:
    """The body, or the address that it is at instead."""
    async with session.get(url, allow_redirects=False, ssl=trusted or True) as response:
        if response.status in _MOVED:
            return _moved(url, response.headers.get("Location", ""))
        if response.status != 200:
            raise FetchFailed(f"the answer has status {response.status}")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise FetchFailed("the answer is compressed, which was not asked for")
        body = bytearray()
        async for part in response.content.iter_any():
            body += part
            if len(body) > most_bytes:
                raise FetchFailed(f"the answer has more than {most_bytes} bytes")
        return bytes(body)


def _moved(url: str, location: str) -> str:
    there = urljoin(url, location)
    before, after = urlsplit(url), urlsplit(there)
    if (before.scheme, before.netloc) != (after.scheme, after.netloc):
        raise FetchFailed("the answer is a redirect to another server")
    return there
