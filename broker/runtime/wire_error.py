"""The wire's error codes for faults of storage: the one place where a fault becomes a code.

Storage raises its own errors for disks and files, and a KafkaError only where Kafka's rules name
the outcome. Where an answer is formed, `wire_error` turns the former into the latter.
"""

from typing import Final

from protocol.errors import ErrorCode, KafkaError
from storage.errors import CorruptLog, StorageError

CODES: Final[tuple[tuple[type[BaseException], ErrorCode], ...]] = (
    (CorruptLog, ErrorCode.CORRUPT_MESSAGE),  # a read hit damage
    (StorageError, ErrorCode.KAFKA_STORAGE_ERROR),  # clients try again
    (BaseException, ErrorCode.KAFKA_STORAGE_ERROR),  # an fsync that ended in any other way
)
"""The first class that fits decides."""


def wire_error(fault: BaseException) -> KafkaError:
    """The KafkaError that answers for `fault`, with its text; one that is such already."""
    if isinstance(fault, KafkaError):
        return fault
    code = next(code for kind, code in CODES if isinstance(fault, kind))
    return KafkaError(code, str(fault))
