"""The time page: static files beside this module, served as they are, at / and /time.

They hold no data and need no token; what the page shows it asks of the API, which has its gate. The
policy that goes with them lets a browser run and load nothing but these files, ask nobody but
this broker, and show the page in no frame. Trusted types: no text ever becomes markup.
"""

from collections.abc import Mapping
from importlib.resources import files
from threading import Lock
from types import MappingProxyType

from broker.http.port.messages import Response

PATHS = ("/", "/time", "/time/")
ASSETS = "/page/"
_INDEX = "index.html"
_TYPES: Mapping[str, str] = MappingProxyType({
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
})  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS: Mapping[str, str] = MappingProxyType({
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
})  # fmt: skip


class TimePage:
    """The files by their paths. Read once, when the first one is asked for; from any thread."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._lock = Lock()
        self._responses: Mapping[str, Response] | None = None

    def answer(self, path: str) -> Response | None:
        """The file at a path; None when there is none."""
        with self._lock:
            if self._responses is None:
                self._responses = _read()
        return self._responses.get(path)


def _read() -> dict[str, Response]:
    found = {}
    for each in files("broker.http.timeline").joinpath("page").iterdir():
        kind = _TYPES.get(each.name[each.name.rfind(".") :])
        if kind is not None:
            found[f"{ASSETS}{each.name}"] = Response(200, kind, each.read_bytes(), HEADERS)
    index = found.pop(f"{ASSETS}{_INDEX}")
    return {**found, **dict.fromkeys(PATHS, index)}
