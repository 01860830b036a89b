"""Tokens for OAUTHBEARER: from a file, or from a provider by https (RFC 6749, 4.4)."""

import json
import time
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPException, HTTPSConnection
from urllib.parse import unquote, urlencode, urlsplit

from broker.access.errors import BadSetting, LoginRefused
from broker.access.files import read_text
from broker.access.settings import TOKEN_URL, ClientSecurity
from broker.access.tls import tls_context

MAX_BYTES = 1 << 20
TIMEOUT_SECONDS = 10
_USED_SHARE = 0.8
_kept: dict[tuple[str, str, str, str], tuple[str, float]] = {}
"""Tokens of providers, and when another is asked for: connections are many, and share one."""


def bearer_token(security: ClientSecurity) -> str:
    """A token. BadSetting, LoginRefused, which quote nothing of it nor of the secret."""
    url = security.settings[TOKEN_URL]
    if url.startswith("file://"):
        found = read_text(TOKEN_URL, unquote(urlsplit(url).path)).strip()
    else:
        found = _of_provider(url, security)
    if not found or not found.isascii() or not found.isprintable():
        raise BadSetting(f"{TOKEN_URL}: {url} gives no token")
    return found


def _of_provider(url: str, security: ClientSecurity) -> str:
    user, secret, scope = _credentials(security)
    key = url, user, secret, scope
    token, until = _kept.get(key, ("", 0.0))
    if time.monotonic() >= until:
        answer = _asked(url, user, secret, scope, security.settings)
        given, seconds = answer.get("access_token"), answer.get("expires_in")
        if not isinstance(given, str):
            raise LoginRefused(f"{TOKEN_URL}: {url} answers without access_token")
        token = given
        if isinstance(seconds, int | float):
            _kept[key] = token, time.monotonic() + seconds * _USED_SHARE
    return token


def _credentials(security: ClientSecurity) -> tuple[str, str, str]:
    """Id, secret and scope, from the settings or, as Kafka 3 had them, from `sasl.jaas.config`."""
    own, jaas, prefix = security.settings, security.jaas, "sasl.oauthbearer.client.credentials"
    return (
        own.get(f"{prefix}.client.id") or jaas.get("clientId", ""),
        own.get(f"{prefix}.client.secret") or jaas.get("clientSecret", ""),
        own.get("sasl.oauthbearer.scope") or jaas.get("scope", ""),
    )


def _asked(
    url: str, user: str, secret: str, scope: str, settings: Mapping[str, str]
) -> dict[str, object]:
    """The provider's answer; redirects are not followed: they would carry the secret away."""
    place = urlsplit(url)
    wanted = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if user or secret:
        headers["Authorization"] = f"Basic {b64encode(f'{user}:{secret}'.encode()).decode()}"
    path = f"{place.path or '/'}{'?' + place.query if place.query else ''}"
    try:
        connection = HTTPSConnection(
            place.hostname or "", place.port, timeout=TIMEOUT_SECONDS, context=tls_context(settings)
        )
        try:
            connection.request("POST", path, urlencode(wanted), headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise LoginRefused(f"{TOKEN_URL}: {url} answers {answer.status}")
            found = json.loads(answer.read(MAX_BYTES))
        finally:
            connection.close()
    except (OSError, HTTPException, ValueError) as error:
        raise LoginRefused(f"{TOKEN_URL}: {url}: {type(error).__name__}, no answer") from None
    return found if isinstance(found, dict) else {}
