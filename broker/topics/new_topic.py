"""A topic before it is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that may be made."""

    name: str
    topic_id: UUID
    partition_count: int
    overrides: Mapping[str, str | None]
