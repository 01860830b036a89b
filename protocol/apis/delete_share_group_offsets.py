"""DeleteShareGroupOffsets 0: forget topics of an empty share group (KIP-932)."""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String, Uuid


@message
class DeleteShareGroupOffsetsTopic:
    """A topic that the group forgets."""

    topic_name: str = field(String)


@message(flexible_from=0)
class DeleteShareGroupOffsetsRequest:
    """Topics of one group."""

    group_id: str = field(String)
    topics: list[DeleteShareGroupOffsetsTopic] = field(Array(DeleteShareGroupOffsetsTopic))


@message
class DeleteShareGroupOffsetsTopicResult:
    """Result of one topic."""

    topic_name: str = field(String)
    topic_id: UUID = field(Uuid)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message(flexible_from=0)
class DeleteShareGroupOffsetsResponse:
    """Result of the group, then of every topic."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    responses: list[DeleteShareGroupOffsetsTopicResult] = field(
        Array(DeleteShareGroupOffsetsTopicResult)
    )


API = Api(
    92,
    "DeleteShareGroupOffsets",
    0,
    0,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
