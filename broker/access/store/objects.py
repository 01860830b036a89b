"""Real object stores that speak S3's protocol. The only module that imports obstore.

The library retries nothing here: our callers do, with their own back-off, and know what they ask
again. Its threads are its own; a call blocks the one that makes it.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from broker.access.store.answers import DELETE, GET, LIST, PUT_FILE, PUT_NEW, error_of
from broker.access.store.credentials import profile_credentials
from broker.access.store.endpoint import choose_endpoint, is_plain
from broker.access.store.refusals import BadStoreSetting, BadStoreUrl, StoreLibraryMissing
from config.tier.url import OptionalTierUrl, TierUrl
from storage.env import Buffer
from storage.tier.port import MAX_GET_BYTES, ObjectFacts, ObjectStore, ObjectTooLarge, StoreError

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ClientConfig, S3Config, S3Store

T = TypeVar("T")

LIST_PAGE = 1000
"""Objects of one request, by S3's protocol."""
IDLE_SECONDS = 15
"""An unused connection is kept that long: stores close them after 20 s or more, unannounced."""
PIECE_BYTES = 64 * 1024
"""Least of a piece, but for the last one. Most are what the connection had: 300 KB."""
MAX_PARTS = 10_000
"""Parts of one object, by S3's protocol."""


class StoreLimits(NamedTuple):
    """Limits of one store: of time in seconds, of memory in bytes."""

    connect_seconds: float = 5
    request_seconds: float = 30
    """Of a whole request, its answer included. A list has one for each 1,000 objects."""
    part_bytes: int = 8 * 1024 * 1024
    """A larger object goes up in parts of this size; S3 takes no smaller ones than 5 MiB."""
    parts_at_once: int = 4
    """Requests of one upload, and its parts in memory, at a time."""


NORMAL_LIMITS = StoreLimits()


def open_store(
    url: str | TierUrl, *, allow_http: bool = False, limits: StoreLimits = NORMAL_LIMITS
) -> ObjectStore:
    """The store at `s3://bucket/prefix`. Nothing is asked of it. TierRefused.

    Credentials, region and endpoint are the environment's (`AWS_*`), else a profile's, else those
    of web identity, container or instance. `allow_http`: plain HTTP beyond this machine, too.
    """
    place = url if isinstance(url, TierUrl) else _parsed(url)
    endpoint = choose_endpoint(os.environ, allow_http=allow_http)
    return S3Objects(_connect(place, endpoint, limits), limits)


class S3Objects:
    """The `ObjectStore` of one place."""

    def __init__(self, store: "S3Store", limits: StoreLimits) -> None:
        """Nothing is asked of it."""
        self._store = store
        self._limits = limits

    def put_new(self, key: str, data: Buffer) -> None:
        """As the port has it: If-None-Match, in one request."""
        _ask(key, PUT_NEW, lambda: self._store.put(key, data, mode="create", use_multipart=False))

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        """As the port has it. An error of `parts` comes through as it is."""
        limits = self._limits
        exact = _exactly(key, parts, size_bytes)
        if size_bytes <= limits.part_bytes:
            _ask(key, PUT_FILE, lambda: self._store.put(key, exact, use_multipart=False))
            return
        part_bytes = _part_bytes(size_bytes, limits)
        _ask(key, PUT_FILE, lambda: self._store.put(
            key, exact, chunk_size=part_bytes, max_concurrency=limits.parts_at_once
        ))  # fmt: skip

    def get(self, key: str) -> bytes:
        """As the port has it."""
        return _ask(key, GET, lambda: self._whole(key))

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it."""
        assert position >= 0, position
        assert size > 0, size
        try:
            return _ask(key, GET, lambda: self._range(key, position, size))
        except StoreError as error:
            if _is_behind_the_end(error):
                return b""
            raise

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        """As the port has it: one request, whose time ends with the last piece."""
        options: GetOptions = {"range": (position, position + size)}
        try:
            found = _ask(key, GET, lambda: self._store.get(key, options=options))
        except StoreError as error:
            if _is_behind_the_end(error):
                return
            raise
        coming = found.stream(min_chunk_size=PIECE_BYTES)
        while (piece := _ask(key, GET, lambda: next(coming, None))) is not None:
            yield memoryview(piece)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        """As the port has it: 1,000 objects a request."""
        assert not prefix or prefix.endswith("/"), prefix
        found = _ask(prefix or "/", LIST, lambda: self._store.list(
            prefix or None, offset=after or None, chunk_size=LIST_PAGE
        ))  # fmt: skip
        while (page := _ask(prefix or "/", LIST, lambda: next(found, None))) is not None:
            for each in page:
                modified_ms = round(each["last_modified"].timestamp() * 1000)
                yield ObjectFacts(each["path"], each["size"], modified_ms)

    def delete(self, keys: Sequence[str]) -> None:
        """As the port has it: 1,000 names a request."""
        if keys:
            _ask(keys[0], DELETE, lambda: self._store.delete(list(keys)))

    def _whole(self, key: str) -> bytes:
        found = self._store.get(key)
        if found.meta["size"] > MAX_GET_BYTES:
            raise ObjectTooLarge(key, GET, f"it has {found.meta['size']} bytes")
        return found.bytes().to_bytes()

    def _range(self, key: str, position: int, size: int) -> bytes:
        return self._store.get_range(key, start=position, length=size).to_bytes()


def requests_of_upload(size_bytes: int, limits: StoreLimits = NORMAL_LIMITS) -> int:
    """Requests that `put_file` takes: one, or those that begin and end it and one for each part."""
    if size_bytes <= limits.part_bytes:
        return 1
    return -(-size_bytes // _part_bytes(size_bytes, limits)) + 2


def _is_behind_the_end(error: StoreError) -> bool:
    return "InvalidRange" in error.message


def _part_bytes(size_bytes: int, limits: StoreLimits) -> int:
    return max(limits.part_bytes, -(-size_bytes // MAX_PARTS))


def _parsed(url: str) -> TierUrl:
    try:
        place = OptionalTierUrl().parse(url)
    except ValueError as error:
        raise BadStoreUrl(str(error)) from None
    if place is None:
        raise BadStoreUrl("there is no URL")
    return place


def _ask(key: str, operation: str, call: Callable[[], T]) -> T:
    """The call's result, or the port's error: alone, since the library's text has secrets."""
    from obstore.exceptions import BaseError

    try:
        return call()
    except (BaseError, OSError, ValueError) as failure:
        error = error_of(failure, key, operation)
    raise error


def _exactly(key: str, parts: Iterator[Buffer], size_bytes: int) -> Iterator[Buffer]:
    """The parts; StoreError, which ends the upload, when they have other than `size_bytes`."""
    seen = 0
    for part in parts:
        seen += len(part)
        if seen > size_bytes:
            break
        yield part
    if seen != size_bytes:
        raise StoreError(
            key, PUT_FILE, f"its parts have not {size_bytes} bytes, but {seen} or more"
        )


def _connect(place: TierUrl, endpoint: str | None, limits: StoreLimits) -> "S3Store":
    try:
        from obstore.exceptions import BaseError
        from obstore.store import S3Store
    except ImportError:
        raise StoreLibraryMissing(
            "it needs the library obstore: pip install 'horolog[tier]'"
        ) from None
    config: S3Config = {
        "bucket": place.bucket,
        "conditional_put": "etag",
        "checksum_algorithm": "SHA256",  # else some stores keep what was spoilt on its way
    }
    if endpoint is not None:
        config["aws_endpoint_url_s3"] = endpoint  # it precedes all other names of it
    client = _client(endpoint, limits)
    try:
        return S3Store(
            prefix=place.prefix or None, config=config, client_options=client,
            retry_config={"max_retries": 0, "retry_timeout": timedelta()},
            credential_provider=profile_credentials(os.environ),
        )  # fmt: skip
    except (BaseError, ValueError):
        pass
    raise BadStoreSetting("a variable AWS_… or the certificates of AWS_CA_BUNDLE cannot be used")


def _client(endpoint: str | None, limits: StoreLimits) -> "ClientConfig":
    """Options of requests. Each is given, since the library takes what is not from AWS_ALLOW_…"""
    options: ClientConfig = {
        "allow_http": is_plain(endpoint),
        "allow_invalid_certificates": False,
        "connect_timeout": timedelta(seconds=limits.connect_seconds),
        "timeout": timedelta(seconds=limits.request_seconds),
        "pool_idle_timeout": timedelta(seconds=IDLE_SECONDS),
        "user_agent": "horolog",
    }
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        try:
            options["root_certificate"] = Path(bundle).read_bytes()
        except OSError:
            raise BadStoreSetting(f"AWS_CA_BUNDLE: {bundle} cannot be read") from None
    return options
