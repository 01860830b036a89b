"""A connection of the HTTP port with TLS: counted and timed from its first byte.

The handshake and all that follows is asyncio's own TLS, put behind a connection that the limits of
`visits.py` hold for already. A renewed certificate counts for connections that come after it.
"""

import asyncio
from typing import Any

from broker.http.port.visits import Visit, Visits
from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer
from broker.server.tls_listener import OF_CERTIFICATES, TlsListener, reason_of

HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 1.0  # for which a client may answer the end of TLS


class TlsVisit(Visit):
    """Raw bytes until the handshake begins; then what TLS makes of them."""

    def __init__(
        self, visits: Visits, inner: Any, tls: TlsListener, probes: BrokerProbes | None
    ) -> None:
        """`inner` is an asyncio protocol, which sees a connection after its handshake."""
        super().__init__(visits, inner)
        self._tls = tls
        self._probes = probes
        self._early: list[bytes] | None = []
        """Data that came with the end of the handshake."""
        self._is_lost = False
        self._shaking: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts it, and begins the handshake."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        self._enter(transport)
        self._wait(HANDSHAKE_SECONDS, "handshake_too_slow")
        self._shaking = self._visits.loop.create_task(self._shake_hands(transport))

    def data_received(self, data: bytes) -> None:
        """Of a request; kept until the one who answers knows the connection."""
        if self._early is None:
            super().data_received(data)
        else:
            self._early.append(data)

    def eof_received(self) -> bool | None:
        """The client sends no more: with TLS, that is the end."""
        return None if self._early is not None else super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._is_lost = True
        if self._early is None:
            super().connection_lost(exc)
        else:
            self._stop_waiting()
            self._visits.went(self)

    async def over(self) -> None:
        """The handshake is not under way any more."""
        if self._shaking is not None:
            await asyncio.wait([self._shaking])

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        try:
            hidden = await self._visits.loop.start_tls(
                transport,
                self,
                self._tls.credentials.context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        except OSError as error:
            self._failed(transport, error)
            return
        if hidden is None or self._is_lost:  # the end came in the middle of it
            self._failed(transport, ConnectionResetError("the client went away"))
        else:
            self._established(hidden)

    def _established(self, hidden: asyncio.Transport) -> None:
        if not self._visits.changed(self, hidden):
            hidden.abort()
            return
        if self._probes is not None:
            self._probes.handshake_done(self._tls.name)
        early, self._early, self.transport = self._early or [], None, hidden
        self._begin(hidden)
        for data in early:
            self.data_received(data)

    def _failed(self, transport: asyncio.Transport, error: OSError) -> None:
        """Reports and counts it, unless the connection was ended here."""
        transport.abort()
        self._stop_waiting()
        if self._visits.of(transport) is not self:
            return
        self._visits.went(self)
        reason = reason_of(error)
        if self._probes is not None:
            self._probes.handshake_failed(reason)
        if reason in OF_CERTIFICATES:
            self._tls.on_refused(Peer(0, self.address, 0, self._tls.name, "", 0), reason)
        detail = getattr(error, "reason", None) or error
        event(
            "tls_handshake_failed",
            "warning",
            reason=reason,
            peer=self.address,
            listener=self._tls.name,
            detail=detail,
        )
