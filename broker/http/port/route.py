"""One question that the API answers: where it is, what it takes, who answers. A declaration."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote

from broker.http.port.caller import Needs, Open
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, Parameter

S = TypeVar("S", bound=tuple[object, ...])
"""Services that answers are made with: a NamedTuple."""


class NoServices(NamedTuple):
    """Of an answer that is the same for every broker."""


@dataclass(frozen=True, slots=True)
class HttpRoute(Generic[S]):
    """`path` may hold names in braces. Either `read`, on a thread, or `act`, on the event loop.

    They give what is rendered as JSON; ApiError, ConfigError, KafkaError and StorageError become
    answers, too. `services` is the NamedTuple that they take, filled once for the broker.
    """

    services: type[S]
    method: str
    path: str
    summary: str
    needs: Needs | Open
    """Right of the caller. Without the right to describe it a resource looks missing."""
    read: Callable[[S, Asked], object] | None = None
    act: Callable[[S, Asked], Awaitable[object]] | None = None
    parameters: tuple[Parameter, ...] = ()
    takes_settings: bool = False
    """Any setting of a topic is a parameter, too."""
    is_early: bool = False
    """It can be answered before the logs are loaded."""

    @property
    def part(self) -> str:
        """The part of the path that names what it is about; empty without one."""
        return self.needs.part if isinstance(self.needs, Needs) else ""

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


def check_routes(routes: Iterable[HttpRoute[Any]]) -> None:
    """LookupError for a route that does not say who may ask it, or says it of nothing in its path.

    Types say so too; but a route that everybody may ask by mistake must not be served.
    """
    for each in routes:
        says_so = isinstance(each.needs, Needs | Open)
        if not says_so:
            raise LookupError(f"{each.method} {each.path} does not say what right it needs")
        if each.part and f"{{{each.part}}}" not in each.path:
            raise LookupError(f"{each.method} {each.path} has no part {each.part!r}")


def _decoded(part: str) -> str:
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError as error:
        raise ApiError(
            400, "bad_path", f"{part!r} is not UTF-8 behind its percent signs"
        ) from error
