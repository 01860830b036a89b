"""The admin API: from a request to JSON, or to a refusal in JSON that says what to do.

Questions are answered on two threads of its own, from snapshots: a slow one holds up neither the
loop nor a probe. What changes something runs on the loop. Every refusal is counted.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from broker.http.port.access import READS, AccessControl
from broker.http.port.messages import JSON, ApiError, Request, Response, rendered
from broker.http.port.parameters import Asked, given, understood
from broker.http.port.route import HttpRoute, Reading
from broker.http.routes import ROUTES
from broker.runtime.admin_trail import AdminChange, Who
from broker.runtime.event_log import event
from broker.server.admin_actions import MAX_DETAIL, MAX_NAME
from config.errors import ConfigError
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices

THREADS = 2


class AdminApi:
    """Answers everything under /api/. Used from the event loop."""

    def __init__(self, broker: "HttpServices", gate: AccessControl) -> None:
        """Starts no thread before the first question."""
        self._broker = broker
        self._gate = gate
        self._threads = ThreadPoolExecutor(THREADS, "http-api")

    async def answer(self, request: Request) -> Response:
        """Never raises: what nobody expected is an answer, too, and an event in the log."""
        refusal = await self._refusal_or(request)
        if isinstance(refusal, Response):
            self._note(request, None)
            return refusal
        self._note(request, refusal)
        self._broker.probes.http_refused(refusal.code)
        return refusal.response()

    async def _refusal_or(self, request: Request) -> Response | ApiError:
        try:
            self._gate.check(request)
            return await self._answer(request)
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

    def _note(self, request: Request, refusal: ApiError | None) -> None:
        """Traces every request that changes something, or tried to."""
        if request.method in READS:
            return
        code, reason = (0, "") if refusal is None else (refusal.status, refusal.message)
        asked = " ".join(filter(None, (request.query, request.body.decode(errors="replace"))))
        change = AdminChange(
            f"HTTP {request.method}", request.path[:MAX_NAME], asked[:MAX_DETAIL], code, reason
        )
        self._broker.trail.noted(Who("", request.address, "HTTP"), change)

    def close(self) -> None:
        """Lets the questions under way end; the others are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _answer(self, request: Request) -> Response:
        route, path = _route_of(request)
        broker = self._broker
        if not (route.is_early or broker.readiness.is_ready):
            raise ApiError(
                503,
                "not_ready",
                f"The broker is {broker.readiness.reason}: ask again when /readyz says ok",
                {"Retry-After": "1"},
            )
        fields, settings = understood(
            given(request),
            route.parameters,
            broker.clock.now_ms(),
            takes_settings=route.takes_settings,
        )
        asked = Asked(path, fields, settings)
        if route.act is not None:
            body = rendered(await route.act(broker, asked))
        else:
            assert route.read is not None
            work = partial(_read, route.read, broker, asked)
            body = await asyncio.get_running_loop().run_in_executor(self._threads, work)
        return Response(200, JSON, body)


def _read(read: Reading, broker: "HttpServices", asked: Asked) -> bytes:
    """On a thread."""
    return rendered(read(broker, asked))


def _route_of(request: Request) -> tuple[HttpRoute, dict[str, str]]:
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
