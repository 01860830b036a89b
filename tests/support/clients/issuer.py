"""A provider of tokens for tests: signs them, publishes its keys, and misbehaves when asked to.

By https it serves `/keys` (JWKS) and `/token` (client credentials, as OIDC clients ask for them).
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

NAME = "https://issuer.test"
AUDIENCE = "horolog"
SigningKey = RSAKey | ECKey | OKPKey


def key_of(kind: str = "EC", kid: str = "one", size: Any = None) -> SigningKey:
    """A private key."""
    if kind == "RSA":
        return RSAKey.generate_key(size or 2048, {"kid": kid})
    if kind == "OKP":
        return OKPKey.generate_key(size or "Ed25519", {"kid": kid})
    return ECKey.generate_key(size or "P-256", {"kid": kid})


class Issuer:
    """Keys and tokens, without a server."""

    def __init__(self, *keys: SigningKey, now: Callable[[], float] = time.time) -> None:
        self.keys = list(keys or (key_of(),))
        self._now = now

    @property
    def published(self) -> dict[str, Any]:
        """The set of public keys."""
        return dict(KeySet(list(self.keys)).as_dict())

    def claims(self, user: str = "alice", seconds: float = 300, **changes: Any) -> dict[str, Any]:
        """The claims of a good token; those that are None are left out."""
        now = int(self._now())
        good = {
            "iss": NAME, "aud": AUDIENCE, "sub": user, "iat": now, "exp": int(now + seconds),
            "scope": "kafka", **changes,
        }  # fmt: skip
        return {name: value for name, value in good.items() if value is not None}

    def token(
        self,
        user: str = "alice",
        seconds: float = 300,
        *,
        key: SigningKey | None = None,
        alg: str = "",
        header: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:
        """A token, signed by the first key unless another is given."""
        key = key or self.keys[0]
        alg = alg or _usual(key)
        described = {"alg": alg, "kid": key.kid, **(header or {})}
        described = {name: value for name, value in described.items() if value is not None}
        claims = self.claims(user, seconds, **changes)
        registry = JWSRegistry(algorithms=[alg], strict_check_header=False)
        return jwt.encode(described, claims, key, registry=registry)


def raw_token(header: Any, claims: Any, signature: bytes = b"") -> str:
    """Any text in a token's form."""
    parts = (
        each if isinstance(each, bytes) else json.dumps(each).encode() for each in (header, claims)
    )
    return ".".join(_base64(each) for each in (*parts, signature))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _usual(key: SigningKey) -> str:
    if isinstance(key, RSAKey):
        return "RS256"
    return "Ed25519" if isinstance(key, OKPKey) else "ES256"


class IssuerServer:
    """An issuer by https (by http without a certificate), on a thread of its own."""

    def __init__(self, issuer: Issuer, pem: Path | None = None) -> None:
        """`pem` has its key and certificate."""
        self.issuer = issuer
        self.asked: list[str] = []
        """Paths of the requests so far."""
        self.token_seconds = 300.0
        self.answers: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        """By path, what is answered in place of keys or token."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer._answer(self)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer._answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._scheme = "http"
        if pem is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._scheme = "https"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"{self._scheme}://localhost:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        with suppress(OSError, ssl.SSLError):
            special = self.answers.get(request.path)
            if special is not None:
                special(request)
            elif request.path == "/token":
                token = self.issuer.token(seconds=self.token_seconds)
                body = {
                    "access_token": token,
                    "token_type": "Bearer",
                    "expires_in": int(self.token_seconds),
                }
                send(request, json.dumps(body).encode())
            else:
                send(request, json.dumps(self.issuer.published).encode())


def send(request: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    """Answers with a document."""
    request.send_response(status)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(body)
