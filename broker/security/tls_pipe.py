"""TLS between a socket and the frames and answers of its connection.

In: ciphertext of one read goes to `received`, plaintext comes out of `read_into`. Out: `sendmsg`
takes plaintext as far as there is room and sends its ciphertext. It stands where a socket stands
for who sends, and is the only one that has the socket: what it is given never leaves in the clear.

Rules: plaintext that was taken is encrypted once, and its ciphertext kept until the system takes
it. Nothing here blocks. `ssl.SSLError` ends the connection; `OSError` is the socket's.
"""

import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Iterator, Sequence
from typing import cast

from storage.env import Buffer

SLICE_BYTES = 64 * 1024  # encrypted at one time: OpenSSL keeps buffers of the largest size
SENT_AT_ONCE = 8 * SLICE_BYTES  # each call wakes the reader: half as many are an eighth of the CPU
SENT_OF_END = SENT_AT_ONCE // 2  # an answer's end, of which the reader decrypts one half meanwhile
RECORDS_OVERHEAD = 8 * 1024  # of SENT_AT_ONCE and a short last buffer, with room to spare
MOST_WAITING = 512 * 1024  # of ciphertext, above which no more plaintext is taken
READ_BYTES = 64 * 1024  # of ciphertext received at one time, for the same reason
MOST_WITHOUT_DATA = 32 * 1024  # a record has 16 KiB; key updates and alerts are all that has none


class TooMuchWithoutData(Exception):  # noqa: N818 - what the client did
    """A client sends records that carry nothing, each of which costs new keys."""


class TlsPipe:
    """The TLS of one connection, on the server's side."""

    __slots__ = (
        "_incoming",
        "_outgoing",
        "_socket",
        "_tls",
        "_unsent",
        "fed_bytes",
        "is_established",
        "plain_bytes",
        "sent_bytes",
        "waiting_bytes",
    )

    def __init__(self, context: ssl.SSLContext, descriptor: int) -> None:
        """`descriptor` is that of a non-blocking socket, which stays its transport's."""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._socket = socket.socket(fileno=descriptor)
        self._unsent: deque[Buffer] = deque()
        self.waiting_bytes = 0  # of ciphertext that the system has not taken
        self.sent_bytes = 0  # of ciphertext
        self.fed_bytes = 0
        """Ciphertext since plaintext came out of it last."""
        self.plain_bytes = 0
        self.is_established = False

    # -- in

    def received(self, ciphertext: Buffer) -> None:
        """Takes what came from the socket."""
        self._incoming.write(ciphertext)
        self.fed_bytes += len(ciphertext)

    def shake_hands(self) -> bool:
        """Goes on with the handshake; True when it is done, or was before. Raises ssl.SSLError."""
        if not self.is_established:
            try:
                self._tls.do_handshake()
                self.is_established = True
            except ssl.SSLWantReadError:
                pass
            finally:  # the alert that says what is wrong leaves too
                self._collect()
        return self.is_established

    @property
    def client_certificate(self) -> bytes | None:
        """The certificate that the client has shown, in DER; None when it has shown none."""
        return self._tls.getpeercert(binary_form=True)

    def read_into(self, room: memoryview) -> int:
        """Decrypts into `room`, as much as there is: 0 when more has to be received first.

        EOFError when the client has said that it sends no more, ssl.SSLError when what came is not
        what it sent, TooMuchWithoutData.
        """
        filled, ended = 0, False
        try:
            while filled < len(room) and not ended:
                size = cast("int", self._tls.read(len(room) - filled, room[filled:]))
                filled += size
                ended = not size
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            ended = True
        self._account(filled)
        if ended and not filled:
            raise EOFError
        return filled

    def _account(self, filled: int) -> None:
        if self._outgoing.pending:  # an answer to an update of keys
            self._collect()
        if filled:
            self.plain_bytes += filled
            self.fed_bytes = 0
        elif self.fed_bytes > MOST_WITHOUT_DATA:
            raise TooMuchWithoutData(f"{self.fed_bytes} bytes of TLS records without data")

    # -- out

    @property
    def room(self) -> int:
        """Plaintext that is taken now."""
        return max(0, MOST_WAITING - self.waiting_bytes) // SLICE_BYTES * SLICE_BYTES

    def send(self, data: Buffer) -> int:
        """As `sendmsg`, with one buffer."""
        return self.sendmsg((data,))

    def sendmsg(self, buffers: Sequence[Buffer], *, is_end: bool = False) -> int:
        """Encrypts and sends the beginning of `buffers`; the bytes of them that were taken.

        What the system does not take of their ciphertext waits here, until `flush`. `is_end`:
        nothing follows them for now.
        """
        taken = 0
        most = (SENT_OF_END if is_end else SENT_AT_ONCE) + RECORDS_OVERHEAD
        for piece in _slices(buffers):
            is_full = self.waiting_bytes + len(piece) > most
            if is_full and not self.flush() and not self.room:
                break
            taken += self._tls.write(piece)
            self._collect()
        self.flush()
        return taken

    def flush(self) -> bool:
        """Sends ciphertext that waits; True when none is left. Raises OSError."""
        unsent = self._unsent
        while unsent:
            try:
                sent = self._socket.sendmsg(unsent)
            except BlockingIOError:
                return False
            self.sent_bytes += sent
            self.waiting_bytes -= sent
            while unsent and sent >= len(unsent[0]):
                sent -= len(unsent.popleft())
            if sent:
                unsent[0] = memoryview(unsent[0])[sent:]
        return True

    def close_notify(self) -> None:
        """Says that nothing follows, as far as the system takes it; the client's word is not
        awaited.
        """
        with contextlib.suppress(ssl.SSLError, OSError):
            try:
                self._tls.unwrap()
            finally:
                self._collect()
                self.flush()

    def fileno(self) -> int:
        """The socket's, to be watched."""
        return self._socket.fileno()

    def detach(self) -> None:
        """Lets go of the socket, and of what waits."""
        self._unsent.clear()
        self.waiting_bytes = 0
        self._socket.detach()

    def _collect(self) -> None:
        if self._outgoing.pending:
            ciphertext = self._outgoing.read()
            self._unsent.append(ciphertext)
            self.waiting_bytes += len(ciphertext)


def _slices(buffers: Sequence[Buffer]) -> Iterator[Buffer]:
    """Pieces to encrypt: what is small goes together, what is large by slices."""
    if len(buffers) > 1 and sum(map(len, buffers)) <= SLICE_BYTES:
        yield b"".join(buffers)
        return
    for buffer in buffers:
        if len(buffer) <= SLICE_BYTES:
            yield buffer
            continue
        view = memoryview(buffer)
        for at in range(0, len(view), SLICE_BYTES):
            yield view[at : at + SLICE_BYTES]
