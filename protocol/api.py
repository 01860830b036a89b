"""Declaration of one API: its key, its names, the versions served, and the messages of both
directions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Api:
    """One row of the registry. `module` is the file name in protocol/apis and broker/handlers."""

    key: int
    name: str
    min_version: int
    max_version: int
    request: type[Any]
    response: type[Any]

    def __post_init__(self) -> None:
        """Refuse a row that contradicts itself."""
        if not 0 <= self.min_version <= self.max_version:
            raise ValueError(f"{self.name}: versions {self.min_version} to {self.max_version}")
        if self.request.__flexible_from__ != self.response.__flexible_from__:
            raise ValueError(f"{self.name}: request and response turn flexible at two versions")

    @property
    def module(self) -> str:
        """The file name that the API has everywhere: ListOffsets is list_offsets."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()

    @property
    def flexible_from(self) -> int:
        """The first version with compact lengths and tags; schema.NEVER when there is none."""
        return int(self.request.__flexible_from__)

    def is_flexible(self, version: int) -> bool:
        """True for a version with compact lengths and tagged fields."""
        return version >= self.flexible_from

    def has(self, version: int) -> bool:
        """True for a version that is served."""
        return self.min_version <= version <= self.max_version
