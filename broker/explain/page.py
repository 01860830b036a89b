"""Page: the text behind one event code or exit status. Pages are data, by subject."""

from typing import NamedTuple

NOTHING = "Nothing."


class Page(NamedTuple):
    """`means`: what has happened, and what it does to clients and data. `advice`: what to do.

    `formerly`: the code's name in an earlier release, or nothing; `horolog explain` knows it too.
    """

    means: str
    advice: str = NOTHING
    formerly: str = ""
