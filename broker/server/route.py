"""A served API: its schema and its handler."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protocol.api import Api

Handler = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One served API. `handle(request, context)` answers, promises an answer, or has none.

    `services` are what `context` gives it. `rights` are the marks (`rights.MARKS`) of the rights of
    which it has to ask for one before it answers without an error; 0 where it is open to all.
    """

    api: Api
    handle: Handler
    services: Any
    rights: int = 0
