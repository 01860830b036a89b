# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Distance of a batch's times from their bounds, from both sides.

Like `walk`, written once and run compiled or as it stands, over an outline of records
(`walk.outline_records`).
"""

from __future__ import annotations

from typing import NamedTuple

import cython

EIGHT = cython.declare(cython.Py_ssize_t, 8)  # numbers of an outline's row


class Edges(NamedTuple):
    """Times in ms, in the order in which `note_edges` has them; see `NO_EDGES`."""

    expired: int  # the greatest before `oldest`
    first: int  # the smallest that is neither before nor after
    last: int  # the greatest of those
    ahead: int  # the smallest after `latest`


LOWEST = -0x7FFF_FFFF_FFFF_FFFF - 1
HIGHEST = 0x7FFF_FFFF_FFFF_FFFF
NO_EDGES = Edges(LOWEST, HIGHEST, LOWEST, HIGHEST)
"""Values while no time was seen."""


def note_edges(
    outline: cython.const[cython.longlong][::1],
    count: cython.Py_ssize_t,
    oldest: cython.longlong,
    latest: cython.longlong,
    edges: cython.longlong[::1],
) -> None:
    """Move `edges` to where the times of `count` records ask for it; -1 is no time."""
    index: cython.Py_ssize_t
    timestamp: cython.longlong
    for index in range(count):
        timestamp = outline[index * EIGHT + 6]
        if timestamp == -1:
            continue
        if timestamp < oldest:
            edges[0] = max(edges[0], timestamp)
        elif timestamp > latest:
            edges[3] = min(edges[3], timestamp)
        else:
            edges[1] = min(edges[1], timestamp)
            edges[2] = max(edges[2], timestamp)
