"""OAUTHBEARER of listeners, from the settings: rules for tokens, and the keys they are signed by.

Keys are read before clients may come, then by a periodic task and at SIGHUP. Without them the
broker runs, and nobody logs in by a token; a file that cannot be read refuses the start.
"""

import ssl
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from broker.security.sasl.exchange import Exchange
from broker.security.sasl.key_source import KeySource
from broker.security.sasl.oauthbearer import BadKeys, Judge, OauthExchange
from config.errors import ConfigError
from config.security.oauth import ENDPOINT, MECHANISM, OauthConfig
from storage.env import FileSystem
from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.daemon.services import Services
    from broker.security.sasl.jwks import SigningKeys

CHECK_SECONDS = 1.0
_TRUST = "horolog.sasl.oauthbearer.truststore.location"


def check_library(services: "Services") -> None:
    """ConfigError when tokens shall be read and the library for that is not there."""
    if services.config.broker_config.listener_oauth and find_spec("joserfc") is None:
        raise ConfigError(
            "sasl.enabled.mechanisms",
            f"sasl.enabled.mechanisms: {MECHANISM} needs the library joserfc: "
            "pip install 'horolog[security]'",
        )


def judges_of(services: "Services") -> Mapping[str, Judge]:
    """The judge of tokens of each listener with OAUTHBEARER; the HTTP port's by the name HTTP.

    Listeners with the same settings share their keys. ConfigError for a bad file of authorities.
    """
    by_listener = services.config.broker_config.listener_oauth
    first: dict[OauthConfig, str] = {}
    for name, config in by_listener.items():
        first.setdefault(config, name)
    judges = {config: _judge(services, name, config) for config, name in first.items()}
    return {name: judges[config] for name, config in by_listener.items()}


def oauth_exchanges(judges: Mapping[str, Judge]) -> Mapping[str, Callable[[str], Exchange]]:
    """Begins an exchange, by listener with OAUTHBEARER."""
    return {name: partial(_begin, judge) for name, judge in judges.items()}


async def read_first_keys(services: "Services") -> None:
    """Before clients may come. ConfigError when a file has no keys; a server may answer later."""
    for name, source in services.key_sources.items():
        await source.refresh()
        url = services.config.broker_config.listener_oauth[name].jwks_endpoint_url
        if source.keys is None and url.startswith("file:"):
            raise ConfigError(ENDPOINT, f"{ENDPOINT} of listener {name}: {source.failure}")


async def refresh_keys(services: "Services", *, is_asked: bool = False) -> None:
    """Reads the keys that are due, or all."""
    for source in services.key_sources.values():
        await source.refresh(is_asked=is_asked)


def _begin(judge: Judge, _: str) -> Exchange:
    return OauthExchange(judge)


def _judge(services: "Services", name: str, config: OauthConfig) -> Judge:
    from broker.security.sasl.signed_tokens import TokenRules

    now_ms = services.clock.now_ms
    if services.config.broker_config.horolog_sasl_oauthbearer_unsecured:
        return partial(TokenRules(config, now_ms, is_unsecured=True).holder, keys=None)
    trusted = _trusted(config, services.fs) if config.truststore_location else None
    read = partial(_read, services, config.jwks_endpoint_url, trusted)
    source = KeySource(config, TokenRules(config, now_ms), read, services.probes.monotonic)
    services.key_sources[name] = source
    return source.judge


def _trusted(config: OauthConfig, fs: FileSystem) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=fs.read_text(config.truststore_location))
    except (DiskError, ValueError, ssl.SSLError) as error:
        raise ConfigError(_TRUST, f"{_TRUST}: {config.truststore_location}: {error}") from error


async def _read(services: "Services", url: str, trusted: ssl.SSLContext | None) -> "SigningKeys":
    """The keys as they are published now. Raises BadKeys."""
    from broker.security.sasl.jwks import MOST_BYTES, read_keys

    if url.startswith("file:"):
        path = unquote(urlsplit(url).path)
        text = await services.lane.run(_start_of, services.fs, path, MOST_BYTES + 1)
    else:
        from broker.http.port.fetch import FetchFailed, fetch

        try:
            text = await fetch(url, MOST_BYTES, trusted)
        except FetchFailed as error:
            raise BadKeys(str(error)) from None
    return await services.lane.run(read_keys, text)


def _start_of(fs: FileSystem, path: str, size: int) -> bytes:
    try:
        file = fs.open(path, write=False)
        try:
            return file.read_at(0, size)
        finally:
            file.close()
    except DiskError as error:
        raise BadKeys(str(error)) from None
