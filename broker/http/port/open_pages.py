"""Pages of the HTTP port without a token: /livez and /readyz, and a list of paths."""

from collections.abc import Sequence
from urllib.parse import parse_qs

from broker.http.port.health import Check, judge

TEXT = "text/plain; charset=utf-8"
INDEX = b"/time\n/livez\n/readyz\n/metrics\n/metrics/kafka\n/api/openapi.json\n"
SCRAPED = ("metrics", "metrics/kafka")

Answer = tuple[int, str, bytes]


class Pages:
    """Answers paths at once, on the event loop: a probe waits for nothing but the loop itself."""

    def __init__(self, live: Sequence[Check], ready: Sequence[Check]) -> None:
        """The checks must not block."""
        self._probes = {"livez": live, "readyz": ready}

    def is_probe(self, path: str) -> bool:
        """True for the paths of health checks."""
        return path.strip("/") in self._probes

    def answer(self, path: str, query: str) -> Answer:
        """Status, content type, body."""
        name = path.strip("/")
        if name in self._probes:
            fields = parse_qs(query, keep_blank_values=True)
            health = judge(
                name,
                self._probes[name],
                fields.get("exclude", ()),
                verbose="verbose" in fields,
            )
            return health.status, TEXT, health.text.encode()
        if not name:
            return 200, TEXT, INDEX
        return 404, TEXT, b"not found\n" + INDEX
