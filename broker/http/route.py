"""One question that the API answers: where it is, what it takes, who answers. A declaration."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.http.parameters import Asked, Parameter

if TYPE_CHECKING:
    from broker.app import Broker

# Gives what is rendered as JSON; ApiError, ConfigError, KafkaError and StorageError are answers.
Reading = Callable[["Broker", Asked], object]
Act = Callable[["Broker", Asked], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Route:
    """`path` may hold names in braces. Either `read`, on a thread, or `act`, on the event loop."""

    method: str
    path: str
    summary: str
    read: Reading | None = None
    act: Act | None = None
    parameters: tuple[Parameter, ...] = ()
    takes_settings: bool = False
    """Whether any setting of a topic is a parameter, too."""
    is_early: bool = False
    """Whether it can be answered before the logs are loaded."""

    def match(self, path: str) -> dict[str, str] | None:
        """The named parts of a path that is ours, None when it is not."""
        wanted, found = self.path.split("/"), path.split("/")
        if len(wanted) != len(found):
            return None
        named: dict[str, str] = {}
        for ours, theirs in zip(wanted, found, strict=True):
            if ours.startswith("{") and theirs:
                named[ours[1:-1]] = theirs
            elif ours != theirs:
                return None
        return named
