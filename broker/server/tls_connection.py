"""One client connection with TLS: the requests and answers of `Connection`, through a pipe.

What has arrived stays in the pipe while the connection is muted or waits for answers, and no event
reports it: whoever lets the connection go on calls `_read_on`, which decrypts what is left before
it reads. Handshakes have a limit of time, of bytes, and of their number.
"""

import ssl

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.event_log import event
from broker.runtime.principals import USER, Principal
from broker.security.tls_pipe import READ_BYTES, TlsPipe, TooMuchWithoutData
from broker.server.connection import SMALL_BYTES, TURN_BYTES, TURN_SECONDS, Connection, Host
from broker.server.tls_listener import (
    HANDSHAKE_BYTES,
    OF_CERTIFICATES,
    TlsListener,
    reason_of,
)
from broker.server.tls_sender import TlsSender
from protocol.frames import foreign_protocol

_HANDSHAKE_RECORD = 0x16


class TlsConnection(Connection):
    """The protocol object of one accepted socket of a listener with TLS."""

    __slots__ = ("_credentials", "_listener", "_pipe", "_received_any")

    _pipe: TlsPipe
    _sender: TlsSender

    def __init__(self, host: Host, listener: TlsListener) -> None:
        """Waits for `connection_made`."""
        super().__init__(host, listener.name)
        self._listener = listener
        self._credentials = listener.credentials
        self._received_any = False

    def _make_sender(self, descriptor: int) -> TlsSender:
        self._listener.begun(self)
        self._pipe = TlsPipe(self._credentials.context, descriptor)
        return TlsSender(
            self._pipe,
            self._host.loop,
            self._host.page_cache,
            on_drained=self._drained,
            on_broken=self._broken,
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over, whichever side ended it."""
        self._listener.ended(self)
        if not self._closing and not self._pipe.is_established:
            self._host.probes.handshake_failed("gave_up")
        super().connection_lost(exc)

    # -- in

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's name
        """The buffer for the next bytes: ciphertext, which the pipe copies at once."""
        return self._host.pool.shared_view[:READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """`nbytes` arrived where `get_buffer` said."""
        self._active = True
        self.received_bytes += nbytes
        if self._closing:
            return
        ciphertext = self._host.pool.shared_view[:nbytes]
        if not self._received_any and not self._begins_well(ciphertext):
            return
        begins, sent_bytes = self._host.probes.monotonic(), self._sender.sent_bytes
        self._pipe.received(ciphertext)
        if not self._pump():
            self._pause()
            return
        if nbytes < SMALL_BYTES and self._sender.sent_bytes != sent_bytes:
            self._host.lockstep.answered(begins)
        self._turn_bytes += nbytes
        if self._turn_bytes >= TURN_BYTES:
            self._transport.pause_reading()
            self._host.loop.call_soon(self._next_turn)

    def _pause(self) -> None:
        if not (self._closing or self._transport.is_closing()):
            self._transport.pause_reading()

    def _read_on(self) -> None:
        """Decrypts and handles what is left in the pipe; then more may come."""
        if self._pump():
            super()._read_on()

    def _pump(self) -> bool:
        """Handles what was received; True when everything was, and more may be read."""
        frames, pipe = self._frames, self._pipe
        self._turn_ends = self._host.probes.monotonic() + TURN_SECONDS
        try:
            if not (pipe.is_established or self._shake_hands()):
                return not self._closing
            while not self._must_wait() and (size := pipe.read_into(frames.buffer())):
                frames.received(size)
                self._flush()
        except CloseConnection as error:
            self._refuse(error)
        except TooMuchWithoutData as error:
            self._refuse(CloseConnection("empty_records", str(error)))
        except EOFError:
            self._transport.close()
            return False
        except ssl.SSLError as error:
            self._sender.flush()
            self._broken(error)
        self._sender.flush()
        return not self._must_wait()

    def _must_wait(self) -> bool:
        return self._frames.held or self._closing is not None or self.is_muted

    # -- the handshake

    def _begins_well(self, ciphertext: memoryview) -> bool:
        """A client that does not begin with TLS gets no answer: that would be in the clear."""
        self._received_any = True
        if ciphertext[0] == _HANDSHAKE_RECORD:
            return True
        kind = foreign_protocol(bytes(ciphertext[:4])) or "Kafka's protocol"
        self.fail("no_tls", f"the client speaks {kind} in the clear")
        return False

    def _shake_hands(self) -> bool:
        try:
            done = self._pipe.shake_hands()
        except ssl.SSLError as error:
            self._sender.flush()  # the alert
            self.fail(reason_of(error), error.reason or error)
            return False
        self._sender.flush()
        if done:
            return self._established()
        if self._pipe.fed_bytes > HANDSHAKE_BYTES:
            self.fail("too_large", f"more than {HANDSHAKE_BYTES} bytes")
        return False

    def _established(self) -> bool:
        """The user is the one whom the client's certificate names, unless SASL names it."""
        self._pipe.fed_bytes = 0
        self._listener.ended(self)
        certificate = self._pipe.client_certificate
        if certificate is not None and self._guest is None:
            try:
                name = self._credentials.user_of(certificate)
            except ValueError as error:
                self.fail("principal_refused", error)
                return False
            self._is_from(Principal(USER, name))
        self._host.probes.handshake_done(self._listener.name)
        return True

    def fail(self, reason: str, detail: object) -> None:
        """Ends a connection whose handshake comes to nothing."""
        if self._closing:
            return
        self._host.probes.handshake_failed(reason)
        if reason in OF_CERTIFICATES:
            self._listener.on_refused(self.peer, reason)
        event(
            "tls_handshake_failed",
            "warning",
            reason=reason,
            peer=self.peer,
            listener=self._listener.name,
            detail=detail,
        )
        self._end("handshake")
        self._transport.close()

    # -- the end

    def _hang_up(self) -> None:
        self._pipe.close_notify()
        super()._hang_up()

    @property
    def queued_bytes(self) -> int:
        """Memory that waits for the client to read."""
        return self._sender.queued_bytes + self._pipe.waiting_bytes

    def _overdue(self, now: float) -> str | None:
        reason = super()._overdue(now)
        late = ("first_frame_late", "authentication_late")
        if reason in late and not self._pipe.is_established:
            self._host.probes.handshake_failed("late")
            return "handshake_late"
        return reason
