"""The admin API: from a request to JSON, or to a refusal in JSON that says what to do.

Questions are answered on two threads of its own, from snapshots: a slow one holds up neither the
loop nor a probe. What changes something runs on the loop. Every refusal is counted.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from broker.http.port.access import READS, AccessControl
from broker.http.port.caller import EVERYBODY, Caller, check_allowed
from broker.http.port.identity import Identities
from broker.http.port.messages import JSON, ApiError, Request, Response, rendered
from broker.http.port.parameters import Asked, given, understood
from broker.http.port.route import HttpRoute, check_routes
from broker.http.routes import ROUTES
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.readiness import Readiness
from broker.security.audit.lines import AdminChange, Who
from broker.security.audit.trail import AuditTrail
from broker.server.services import bound
from config.errors import ConfigError
from protocol.errors import ErrorCode, KafkaError
from storage.env import Clock
from storage.errors import StorageError

THREADS = 2
HTTP, UNAUTHORIZED = "HTTP", 401
DENIALS = frozenset({"forbidden", "role"})
"""Codes of refusals for the lack of a right."""


class ApiServices(NamedTuple):
    """The services that every request needs, whatever it asks."""

    clock: Clock
    probes: BrokerProbes
    readiness: Readiness
    trail: AuditTrail


class AdminApi:
    """Answers everything under /api/. Used from the event loop."""

    def __init__(self, services: object, gate: AccessControl, identities: Identities) -> None:
        """Each route receives what it names of `services`; starts no thread before a question.

        LookupError for a route that does not say what it needs.
        """
        check_routes(ROUTES)
        self._services: ApiServices = bound(ApiServices, services)
        kinds = {route.services for route in ROUTES}
        self._bound = {kind: bound(kind, services) for kind in kinds}
        self._gate = gate
        self._identities = identities
        self._threads = ThreadPoolExecutor(THREADS, "http-api")

    async def answer(self, request: Request) -> Response:
        """Never raises: what nobody expected is an answer, too, and an event in the log."""
        caller: Caller | None = None
        try:
            self._gate.check(request)
            caller = await self._identities.of_api(request)
        except ApiError as error:
            refusal: Response | ApiError = error
        else:
            refusal = await self._refusal_or(request, caller)
        await self._note(request, caller, refusal)
        if isinstance(refusal, Response):
            return refusal
        self._services.probes.http_refused(refusal.code)
        return self._identities.challenged(refusal, request).response()

    async def _refusal_or(self, request: Request, caller: Caller) -> Response | ApiError:
        try:
            self._check_audit(request)
            await self._room(request)
            return await self._answer(request, caller)
        except ApiError as error:
            return error
        except ConfigError as error:
            return ApiError(400, "bad_setting", str(error))
        except KafkaError as error:
            return ApiError(_status_of(error), "kafka_error", error.message)
        except StorageError as error:
            return ApiError(503, "storage_error", str(error))
        except Exception as error:  # noqa: BLE001 - the broker goes on
            number = event("http_request_failed", "error", path=request.path, error=repr(error))
            return ApiError(500, "internal_error", f"This is a fault of ours: event {number}")

    def _check_audit(self, request: Request) -> None:
        """No change is made that would leave no trace."""
        if self._services.trail.is_lost and request.method not in READS:
            raise ApiError(
                503,
                "audit_lost",
                "The security audit can be written nowhere, so nothing may be changed: mend "
                "horolog.security.audit.file",
            )

    async def _note(
        self, request: Request, caller: Caller | None, outcome: Response | ApiError
    ) -> None:
        """Traces what changes something, or tried to, what was denied, and every wrong secret."""
        trail = self._services.trail
        who = Who("", request.address, HTTP, str((caller or EVERYBODY).principal))
        operation = f"{HTTP} {request.method}"
        code, reason = (
            (outcome.status, outcome.message) if isinstance(outcome, ApiError) else (0, "")
        )
        if isinstance(outcome, ApiError) and is_wrong_secret(request, outcome):
            trail.authentication_failed(who, HTTP, reason)
        elif isinstance(outcome, ApiError) and outcome.code in DENIALS:
            trail.refused(who, operation, request.path, reason)
        elif request.method not in READS:
            change = AdminChange(operation, request.path, _asked(request), code, reason)
            trail.noted(who, change, HTTP)
            await self._room(request)

    async def _room(self, request: Request) -> None:
        """Waits until the audit has room for what a change leaves, before it and after."""
        room = None if request.method in READS else self._services.trail.room()
        if room is not None:
            await wait_for(room)

    def note_stranger(self, request: Request, refusal: ApiError) -> None:
        """Traces a wrong secret at a page that is none of the API."""
        if is_wrong_secret(request, refusal):
            who = Who("", request.address, HTTP, str(EVERYBODY.principal))
            self._services.trail.authentication_failed(who, HTTP, refusal.message)

    def close(self) -> None:
        """Lets the questions under way end; the others are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, request: Request, caller: Caller) -> Response:
        route, path = _route_of(request)
        check_allowed(caller, route.needs, path.get(route.part, ""))
        readiness = self._services.readiness
        if not (route.is_early or readiness.is_ready):
            raise ApiError(
                503,
                "not_ready",
                f"The broker is {readiness.reason}: ask again when /readyz says ok",
                {"Retry-After": "1"},
            )
        fields, settings = understood(
            given(request),
            route.parameters,
            self._services.clock.now_ms(),
            takes_settings=route.takes_settings,
        )
        asked, services = Asked(path, fields, settings, caller), self._bound[route.services]
        if route.act is not None:
            body = rendered(await route.act(services, asked))
        else:
            assert route.read is not None
            work = partial(_read, route.read, services, asked)
            body = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        return Response(200, JSON, body)


def is_wrong_secret(request: Request, refusal: ApiError) -> bool:
    """True when a request was refused for what it showed, not for showing nothing."""
    return refusal.status == UNAUTHORIZED and bool(request.authorization)


def _read(read: Callable[[Any, Asked], object], services: object, asked: Asked) -> bytes:
    """On a thread."""
    return rendered(read(services, asked))


def _asked(request: Request) -> str:
    """The parameters that the path takes, with their values; of others nobody knows what they are.

    Empty for a request that was not understood.
    """
    try:
        route, _ = _route_of(request)
        texts = given(request)
    except ApiError:
        return ""
    known = {each.name for each in route.parameters}
    return " ".join(
        f"{name}={text if name in known else '[hidden]'}" for name, text in texts.items()
    )


def _route_of(request: Request) -> tuple[HttpRoute[Any], dict[str, str]]:
    method = "GET" if request.method in READS else request.method
    allowed = []
    for route in ROUTES:
        path = route.match(request.path)
        if path is not None and route.method == method:
            return route, path
        if path is not None:
            allowed += ["GET", "HEAD"] if route.method == "GET" else [route.method]
    if allowed:
        raise ApiError(
            405,
            "method",
            f"{request.path} takes {', '.join(allowed)}, not {request.method}",
            {"Allow": ", ".join(allowed)},
        )
    raise ApiError(404, "unknown_path", "There is nothing here: see /api/openapi.json")


def _status_of(error: KafkaError) -> int:
    return 503 if error.code == ErrorCode.KAFKA_STORAGE_ERROR else 400
