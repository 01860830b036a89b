"""Endpoint of the store, by the environment: the first of `ENDPOINTS`, else Amazon's."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from broker.access.store.refusals import BadStoreSetting, PlainHttpRefused

ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_FORM = "https://HOST:PORT"


def choose_endpoint(environment: Mapping[str, str], *, allow_http: bool) -> str | None:
    """Endpoint of the store; None: Amazon's, of the region. BadStoreSetting, PlainHttpRefused.

    `allow_http`: plain HTTP beyond this machine, too. No error repeats the text.
    """
    for name in ENDPOINTS:
        if endpoint := environment.get(name, "").strip():
            _check(name, endpoint, allow_http=allow_http)
            return endpoint
    return None


def is_plain(endpoint: str | None) -> bool:
    """True for an endpoint without TLS."""
    return endpoint is not None and endpoint.lower().startswith("http://")


def _check(name: str, endpoint: str, *, allow_http: bool) -> None:
    parts = _parts(name, endpoint)
    if "@" in parts.netloc:
        raise BadStoreSetting(f"{name}: credentials have no place in it")
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise BadStoreSetting(f"{name} is no URL like {_FORM}")
    if parts.scheme == "http" and not allow_http and not _is_loopback(parts.hostname):
        raise PlainHttpRefused(
            f"{name} is without TLS, and {parts.hostname} is another machine: use https, or set "
            "horolog.tier.allow.http=true"
        )


def _parts(name: str, endpoint: str) -> SplitResult:
    try:
        parts = urlsplit(endpoint)
        _ = parts.port  # a port that is none
    except ValueError:
        raise BadStoreSetting(f"{name} is no URL like {_FORM}") from None
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
