"""The line between a broker and its copier: packets of JSON, some of which bring open files.

A packet comes whole or not at all, and the kernel ends the line with either process.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MAX_PACKET_BYTES = 64 * 1024
"""Most of it are the checksums of the blocks of one segment, 16 KiB at 2 GiB."""
MAX_FILES = 1


class LineEnded(OSError):  # noqa: N818 - what happened
    """The process at the other end has ended, or sent what is no packet of ours."""


class Packet(NamedTuple):
    """Content that came, with descriptors that are the receiver's from now on."""

    content: Mapping[str, Any]
    files: tuple[int, ...]


class CopierLine:
    """One end. One thread at a time."""

    __slots__ = ("_socket",)

    def __init__(self, end: socket.socket) -> None:
        """Takes over the end of a pair of SOCK_SEQPACKET."""
        self._socket = end

    def send(self, content: Mapping[str, Any], files: Sequence[int] = ()) -> None:
        """Sends a packet; the files stay the sender's as well. OSError: the line is over."""
        data = json.dumps(content, separators=(",", ":")).encode()
        if len(data) > MAX_PACKET_BYTES:
            raise LineEnded(f"a packet of {len(data)} bytes")
        if files:
            socket.send_fds(self._socket, [data], list(files))
        else:
            self._socket.send(data)

    def receive(self, seconds: float | None = None) -> Packet:
        """The next packet. OSError: the line is over; TimeoutError: none came in that time."""
        self._socket.settimeout(seconds)
        data, found, flags, _ = socket.recv_fds(
            self._socket, MAX_PACKET_BYTES, MAX_FILES, socket.MSG_CMSG_CLOEXEC
        )
        files = tuple(found)
        try:
            if not data or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raise LineEnded("it was ended at the other end" if not data else "it was cut off")
            return Packet(json.loads(data), files)
        except (OSError, ValueError, RecursionError) as error:
            for each in files:
                os.close(each)
            raise LineEnded(str(error)) from error

    def close(self) -> None:
        """Ends the line. Closing twice is allowed."""
        self._socket.close()


def new_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a line. OSError."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
