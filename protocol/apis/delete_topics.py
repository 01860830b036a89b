"""DeleteTopics 0-6: remove topics with all they hold.

0. 1: throttle time. 2: throttling after the answer. 3: the answer may hold TOPIC_DELETION_DISABLED.
4: flexible. 5: error texts, THROTTLING_QUOTA_EXCEEDED. 6: topics by id.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String, Uuid


@message
class DeleteTopicState:
    """A topic by name or by id, not both."""

    name: str | None = field(String, since=6, nullable=True)
    topic_id: UUID = field(Uuid, since=6)


@message(flexible_from=4)
class DeleteTopicsRequest:
    """The topics to remove: `topic_names` to version 5, `topics` from 6 on."""

    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), since=6)
    topic_names: list[str] = field(Array(String), until=5)
    timeout_ms: int = field(Int32)


@message
class DeletableTopicResult:
    """Result of one topic; `name` is None (6 and later) for an unknown id."""

    name: str | None = field(String, nullable=6)
    topic_id: UUID = field(Uuid, since=6)
    error_code: int = field(Int16)
    error_message: str | None = field(String, since=5, nullable=True)


@message(flexible_from=4)
class DeleteTopicsResponse:
    """Result of each topic."""

    throttle_time_ms: int = field(Int32, since=1)
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult))


API = Api(20, "DeleteTopics", 0, 6, DeleteTopicsRequest, DeleteTopicsResponse)
