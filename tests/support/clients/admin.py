"""A plain client of the admin API, as any language has one: one request, JSON back."""

import json
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlencode

TIMEOUT_SECONDS = 60


class Answered(NamedTuple):
    """A response; `content` is None when its body is empty."""

    status: int
    headers: dict[str, str]
    content: Any

    @property
    def code(self) -> str:
        """The code of a refusal."""
        code: str = self.content["error"]["code"]
        return code

    @property
    def message(self) -> str:
        """The sentence of a refusal."""
        message: str = self.content["error"]["message"]
        return message


class Admin:
    """The API at `address` (host:port)."""

    def __init__(self, address: str) -> None:
        self.address = address

    def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
        **parameters: object,
    ) -> Answered:
        """One request; underscores in the names of parameters stand for dots."""
        named = {name.replace("_", "."): value for name, value in parameters.items()}
        target = f"{path}?{urlencode(named)}" if named else path
        connection = HTTPConnection(self.address, timeout=TIMEOUT_SECONDS)
        try:
            connection.request(method, target, body, headers or {})
            response = connection.getresponse()
            content = response.read()
            kind = response.headers.get("Content-Type", "")
            found = json.loads(content) if content and kind.startswith("application/json") else None
            return Answered(response.status, dict(response.headers), found)
        finally:
            connection.close()

    def get(self, path: str, **parameters: Any) -> Any:
        """The content of an answer that has to be a good one."""
        return self._good(self.ask("GET", path, **parameters))

    def post(self, path: str, **parameters: Any) -> Any:
        """As `get`, for a change."""
        return self._good(self.ask("POST", path, **parameters))

    def _good(self, answered: Answered) -> Any:
        assert answered.status == 200, answered
        return answered.content

    def segments(self, topic: str, partition: int = 0) -> list[dict[str, Any]]:
        """All segments of a partition, page after page."""
        path, found, after = f"/api/topics/{topic}/segments", [], f"{partition}:-1"
        while after:
            page = self.get(path, partition=partition, after=after)
            found += page["partitions"][0]["segments"]
            after = page["next"]
        return found
