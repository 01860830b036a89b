"""Limits of one connection, in one place (operations C2). Each number closes a hole."""

from dataclasses import dataclass

MIN_FRAME_RATE = 64 * 1024  # bytes per second that a large frame must arrive with, beyond the grace

UNLIMITED = 1 << 62
ALL_QUEUED_BYTES = 256 * 1024 * 1024
RESERVED_FILES_LEAST, RESERVED_FILES_MOST = 64, 5000  # not for connections: a quarter between these
FILES_OF_A_CONNECTION = 2  # its socket, and a duplicate while its client reads slowly


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection. Times in seconds of the monotonic clock, checked every second."""

    max_by_open_files: int = UNLIMITED  # connections, whatever max.connections says
    max_frame_bytes: int = 100 * 1024 * 1024
    max_in_flight: int = 100  # requests that wait for their answer
    max_parked_bytes: int = 8 * 1024 * 1024  # of requests and answers that wait for one before them
    max_queued_bytes: int = 8 * 1024 * 1024  # of memory, waiting for the peer to read
    max_queued_parts: int = 256  # buffers and file pieces, waiting likewise
    all_queued_bytes: int = ALL_QUEUED_BYTES  # of memory, of all connections together
    all_received_bytes: int = UNLIMITED  # of large requests that are under way, likewise
    first_frame_seconds: float = 10.0
    frame_seconds: float = 30.0
    stalled_seconds: float = 60.0  # with output queued and nothing taken
    idle_seconds: float = 600.0


def connections_within(open_files: int) -> int:
    """Number of connections that leave the logs the files they need, with so many files allowed.

    A negative number means that the system sets no limit.
    """
    if open_files < 0:
        return UNLIMITED
    reserved = min(max(open_files // 4, RESERVED_FILES_LEAST), RESERVED_FILES_MOST)
    return (open_files - reserved) // FILES_OF_A_CONNECTION


def or_unlimited(size_bytes: int) -> int:
    """A bound as a setting gives it, where -1 (and 0, which nothing would fit) means none."""
    return size_bytes if size_bytes > 0 else UNLIMITED


class CloseConnection(Exception):  # noqa: N818 - an order, not a fault
    """The connection must end: what Kafka does where it has no error code to answer with.

    `reason` is one of a closed set of words (it is a metric label); the text is for the log.
    """

    def __init__(self, reason: str, message: str = "") -> None:
        """`reason`: see `CLOSE_REASONS`."""
        assert reason in CLOSE_REASONS, reason
        super().__init__(message or reason)
        self.reason = reason


CLOSE_REASONS = frozenset(
    {
        "acks_zero_error",  # a producer that wants no answers must notice somehow
        "foreign_protocol",
        "frame_size",  # negative, or over socket.request.max.bytes
        "malformed",
        "unsupported_version",
        "internal_error",
        "audit_lost",  # an administrative request that no trace would be left of
        "unchecked_handler",  # an answer that no right was asked for
        "empty_records",  # of TLS: nothing but changes of keys
        "first_frame_late",
        "frame_late",
        "stalled_reader",
        "memory",  # all queues together are over their limit, and this one is the longest
        "request_memory",  # all requests that are being received are over theirs
        "illegal_sasl_state",  # a request before its turn: the client has not proven who it is
        "authentication_failed",
        "authentication_late",
        "authentication_busy",  # too many passwords are being compared
        "unauthenticated",  # too many have not proven who they are, and this one is the oldest
        "credential_removed",
        "session_expired",  # a request after the end of its session (KIP-368)
        "idle",
        "broken",  # the socket failed, or a file ended early
        "stopping",
    }
)
