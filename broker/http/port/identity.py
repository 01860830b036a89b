"""Identities of callers: a token, a user with a password, certificate or token, or a stranger.

Without an authorizer there are tokens and nothing else: everybody on a loopback listener may read,
changes need a token, and so does all of the API elsewhere; but a broker with a test clock takes
changes on loopback without one. With an authorizer everybody has the rights of the user that it
says it is; who says nothing is `User:ANONYMOUS` on a loopback listener, and has no right elsewhere.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from broker.http.port.access import READS, is_loopback
from broker.http.port.caller import EVERYBODY, Caller, Role
from broker.http.port.messages import ApiError, Request
from broker.http.port.token import KEY, HttpTokens
from broker.runtime.connection_limits import CloseConnection
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.principals import ANONYMOUS, USER, Principal
from broker.runtime.rights import Asker, Rights
from broker.security.sasl.exchange import Proof
from broker.security.sasl.failures import FailureDelays
from broker.security.sasl.oauthbearer import MOST_DETAIL, BadToken, Judge
from broker.security.sasl.plain import Passwords
from protocol.acls import ResourceType

TOKEN = "Token"  # noqa: S105 - the kind of a principal: `Token:operate`
BEARER = 'Bearer realm="horolog"'
BASIC = 'Basic realm="horolog", charset="UTF-8"'


class KnownUsers(NamedTuple):
    """Proofs of users, and their rights; of a broker with an authorizer."""

    rights_of: Callable[[Principal, str], Rights | None]
    """Rights of a user at an address, for one thread; None: everything."""
    passwords: Passwords
    user_of_certificate: Callable[[bytes], str]
    """Name of the user of a certificate, in DER; ValueError when it is refused."""
    judge: Judge | None = None
    """The holder of a provider's token (OAUTHBEARER); None where none is taken."""


class Identities:
    """The callers of one listener. Used from the event loop."""

    def __init__(
        self,
        host: str,
        tokens: HttpTokens,
        users: KnownUsers | None,
        delays: FailureDelays,
        *,
        is_test: bool,
    ) -> None:
        """`host`: the listener's, as it is set. `users`: None without an authorizer."""
        self._delays = delays
        self._is_loopback = host == "localhost" or is_loopback(host)
        self._tokens = tokens
        self._users = users
        self._is_test = is_test

    async def of_api(self, request: Request) -> Caller:
        """The caller of the API. ApiError 401 when it has to say who it is, or is not that."""
        if self._users is not None:
            caller = await self._proven(self._users, request)
            if not (caller.is_known or self._is_loopback):
                raise self._who_are_you(request, "identity", "say who you are")
            return caller
        if self._is_loopback and (request.method in READS or self._is_test):
            return EVERYBODY
        return await self._token_needed(request)

    async def of_reader(self, request: Request) -> Caller:
        """The caller of a page that everybody may read, each as much as it may see. ApiError."""
        return EVERYBODY if self._users is None else await self._proven(self._users, request)

    def challenged(self, error: ApiError, request: Request) -> ApiError:
        """The refusal; one for the lack of an identity with the ways to show one."""
        if error.status != 401 or error.headers:
            return error
        return ApiError(401, error.code, error.message, self._challenge(request))

    async def _token_needed(self, request: Request) -> Caller:
        if not self._tokens.value:
            raise ApiError(
                403,
                "no_token_set",
                f"This needs a token, and none is set: name a file in {KEY}",
            )
        kind, given = _credentials(request)
        if kind != "bearer":
            raise self._no_token(request)
        role = self._tokens.role_of(given)
        if role is None:
            raise await self._wrong_token(request)
        return _of_token(role)

    async def _proven(self, users: KnownUsers, request: Request) -> Caller:
        kind, given = _credentials(request)
        if kind == "bearer":
            role = self._tokens.role_of(given)
            return (
                await self._with_token(users, request, given) if role is None else _of_token(role)
            )
        if kind == "basic":
            return await self._with_password(users, request, given)
        if kind:
            raise self._who_are_you(request, "credentials", f"{kind!r} is not taken")
        if request.certificate is not None:
            return _of_certificate(users, request, request.certificate)
        rights = users.rights_of(ANONYMOUS, request.address) if self._is_loopback else NO_RIGHTS
        return Caller(ANONYMOUS, rights, is_known=False)

    async def _with_token(self, users: KnownUsers, request: Request, given: str) -> Caller:
        """Of a provider, if it looks like one: three parts (RFC 7515, section 3.1)."""
        if users.judge is None or given.count(".") != 2:
            raise await self._wrong_token(request)
        _check_is_hidden("token", request)
        try:
            found = users.judge(given)
            proof = found if isinstance(found, Proof) else await wait_for(found)
        except BadToken as error:
            await self._wait_after_failure(request, "Bearer", f"{error!s:.{MOST_DETAIL}}")
            raise self._who_are_you(request, "token", "The token is not taken") from None
        return _of_user(users, proof.user, request)

    async def _with_password(self, users: KnownUsers, request: Request, given: str) -> Caller:
        _check_is_hidden("password", request)
        name, password = _name_and_password(given)
        try:
            proven = await wait_for(users.passwords.check(name, password, request.address))
        except CloseConnection as error:
            raise ApiError(503, "busy", str(error), {"Retry-After": "1"}) from error
        if proven is None:
            await self._wait_after_failure(request, "Basic")
            raise self._who_are_you(request, "credentials", "Invalid username or password")
        return _of_user(users, name, request)

    async def _wrong_token(self, request: Request) -> ApiError:
        """The refusal of a guess, once its address has waited for it."""
        await self._wait_after_failure(request, "Bearer")
        return self._no_token(request)

    async def _wait_after_failure(self, request: Request, mechanism: str, detail: str = "") -> None:
        """`detail` is for the operator alone."""
        more = {"detail": detail} if detail else {}
        event(
            "authentication_failed",
            "warning",
            peer=request.address,
            listener="HTTP",
            mechanism=mechanism,
            **more,
        )
        await asyncio.sleep(self._delays.failed(request.address))

    def _no_token(self, request: Request) -> ApiError:
        return self._who_are_you(
            request,
            "token",
            "This needs the header 'Authorization: Bearer TOKEN' with a token of this broker",
        )

    def _who_are_you(self, request: Request, code: str, message: str) -> ApiError:
        return ApiError(401, code, message, self._challenge(request))

    def _challenge(self, request: Request) -> dict[str, str]:
        takes_passwords = self._users is not None and _hides_passwords(request)
        return {"WWW-Authenticate": f"{BEARER}, {BASIC}" if takes_passwords else BEARER}


class _NoRights:
    """The rights of a stranger on a network."""

    granted: Final[Mapping[int, Collection[str]]] = MappingProxyType({})

    def may(self, mark: int, name: str, /) -> bool:  # noqa: ARG002 - whatever it is
        """Never."""
        return False

    def bits(self, kind: ResourceType, name: str, /) -> int:  # noqa: ARG002 - likewise
        """None."""
        return 0

    def may_on_any(self, mark: int, /) -> bool:  # noqa: ARG002 - likewise
        """Never."""
        return False

    def denied(self, mark: int, name: str, asker: Asker, /) -> None:
        """A refusal as a whole is for the audit, see `AdminApi`."""


NO_RIGHTS = _NoRights()


def _credentials(request: Request) -> tuple[str, str]:
    """Scheme, in small letters, and what comes after it; empty without the header."""
    kind, _, given = (request.authorization or "").strip().partition(" ")
    return kind.lower(), given.strip()


def _hides_passwords(request: Request) -> bool:
    return request.is_tls or is_loopback(request.address)


def _check_is_hidden(what: str, request: Request) -> None:
    if not _hides_passwords(request):
        raise ApiError(
            403,
            f"{what}_in_the_clear",
            f"A {what} over plain HTTP can be read by everybody on the way: use https "
            "(horolog.http.security.protocol=SSL), or ask on the broker's machine",
        )


def _name_and_password(given: str) -> tuple[str, bytes]:
    """As RFC 7617 has it; anything else becomes a user that nobody has."""
    try:
        name, _, password = base64.b64decode(given, validate=True).partition(b":")
        return name.decode(), password
    except (binascii.Error, ValueError):
        return "", b""


def _of_token(role: Role) -> Caller:
    return Caller(Principal(TOKEN, role.name.lower()), role=role)


def _of_user(users: KnownUsers, name: str, request: Request) -> Caller:
    principal = Principal(USER, name)
    return Caller(principal, users.rights_of(principal, request.address))


def _of_certificate(users: KnownUsers, request: Request, certificate: bytes) -> Caller:
    try:
        name = users.user_of_certificate(certificate)
    except ValueError as error:
        raise ApiError(
            403, "certificate", f"The client's certificate is refused: {error}"
        ) from error
    return _of_user(users, name, request)
