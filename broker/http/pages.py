"""What everybody may see at the HTTP port: /livez, /readyz, the metrics, and a list at /."""

from collections.abc import Callable, Sequence
from urllib.parse import parse_qs

from broker.http.health import Check, judge

TEXT = "text/plain; charset=utf-8"
INDEX = b"/time\n/livez\n/readyz\n/metrics\n/metrics/kafka\n/api/openapi.json\n"
SCRAPED = ("metrics", "metrics/kafka")

Answer = tuple[int, str, bytes]


class Pages:
    """Answers paths. Called from any thread."""

    def __init__(
        self,
        live: Sequence[Check],
        ready: Sequence[Check],
        scrape: Callable[[str], tuple[str, bytes]],
    ) -> None:
        """`scrape(path)` gives content type and body of the paths of `SCRAPED`."""
        self._probes = {"livez": live, "readyz": ready}
        self._scrape = scrape

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
        if name in SCRAPED:
            content_type, body = self._scrape(name)
            return 200, content_type, body
        if not name:
            return 200, TEXT, INDEX
        return 404, TEXT, b"not found\n" + INDEX
