"""One question that the API answers: where it is, what it takes, who answers. A declaration."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, Parameter

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices

# Gives what is rendered as JSON; ApiError, ConfigError, KafkaError and StorageError are answers.
Reading = Callable[["HttpServices", Asked], object]
Act = Callable[["HttpServices", Asked], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """`path` may hold names in braces. Either `read`, on a thread, or `act`, on the event loop."""

    method: str
    path: str
    summary: str
    read: Reading | None = None
    act: Act | None = None
    parameters: tuple[Parameter, ...] = ()
    takes_settings: bool = False
    """Any setting of a topic is a parameter, too."""
    is_early: bool = False
    """It can be answered before the logs are loaded."""

    def match(self, path: str) -> dict[str, str] | None:
        """The named parts of a path that is ours, None when it is not. It is as it was sent.

        Decoded after it is split, so that a name may hold a slash; ApiError when it is no UTF-8.
        """
        wanted, found = self.path.split("/"), path.split("/")
        if len(wanted) != len(found):
            return None
        named: dict[str, str] = {}
        for ours, theirs in zip(wanted, map(_decoded, found), strict=True):
            if ours.startswith("{") and theirs:
                named[ours[1:-1]] = theirs
            elif ours != theirs:
                return None
        return named


def _decoded(part: str) -> str:
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise ApiError(
            400, "bad_path", f"{part!r} is not UTF-8 behind its percent signs"
        ) from error
