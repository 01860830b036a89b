"""The lines of a scrape that a caller may see: no names of topics and groups that it may not.

One scrape serves all who ask within a second, so it is made whole, and cut here.
"""

import re
import time
from collections.abc import Callable, Iterator

from broker.http.port.caller import Caller

PAUSE_SECONDS, PAUSE_EVERY = 0.0005, 200  # lines
_NAMED = re.compile(r'[{,](topic|group|consumergroup)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def shown(text: bytes, caller: Caller) -> bytes:
    """Blocks, with pauses in which the event loop has its turn."""
    return "\n".join(_lines(text.decode(), caller)).encode()


def _lines(text: str, caller: Caller) -> Iterator[str]:
    sees: dict[str, Callable[[str], bool]] = {
        "topic": caller.sees_topic,
        "group": caller.sees_group,
        "consumergroup": caller.sees_group,
    }
    for number, line in enumerate(text.split("\n")):
        if number % PAUSE_EVERY == PAUSE_EVERY - 1:
            time.sleep(PAUSE_SECONDS)
        if line.startswith("#") or all(
            sees[label](_plain(value)) for label, value in _NAMED.findall(line)
        ):
            yield line


def _plain(value: str) -> str:
    """A label's value without its escapes."""
    return _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value)
