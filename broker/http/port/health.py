"""Is it alive, is it ready, and if not, why: the answers of /livez and /readyz.

The form is the one of the Kubernetes API server: plain text, `?verbose` lists every check,
`?exclude=name` leaves one out (several allowed). 200 when all checks pass, else 503.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

OK, UNAVAILABLE = 200, 503


class Check(NamedTuple):
    """One condition. `fault()` is None when it holds, else the reason in words.

    `note()` tells what an operator should know although the condition holds.
    """

    name: str
    fault: Callable[[], str | None]
    note: Callable[[], str | None] = lambda: None


class Health(NamedTuple):
    """An answer: HTTP status and text."""

    status: int
    text: str


def judge(
    probe: str, checks: Sequence[Check], exclude: Collection[str] = (), *, verbose: bool = False
) -> Health:
    """Runs the checks of `probe` ("livez" or "readyz")."""
    known = {check.name for check in checks}
    lines = []
    failed = False
    for check in checks:
        fault = None if check.name in exclude else check.fault()
        failed |= fault is not None
        lines.append(_line(check, fault, excluded=check.name in exclude))
    unknown = sorted(set(exclude) - known)
    if unknown:
        lines.append(f"warn: no such check: {', '.join(unknown)}")
    lines.append(f"{probe} check {'failed' if failed else 'passed'}")
    text = "\n".join(lines) if failed or verbose else "ok"
    return Health(UNAVAILABLE if failed else OK, text + "\n")


def _line(check: Check, fault: str | None, *, excluded: bool) -> str:
    if excluded:
        return f"[+]{check.name} excluded: ok"
    if fault is not None:
        return f"[-]{check.name} failed: {fault}"
    note = check.note()
    return f"[+]{check.name} ok" + (f": {note}" if note else "")
