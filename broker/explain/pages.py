"""All pages, their search and their output. Loaded by `horolog explain` only."""

import textwrap
from collections.abc import Mapping
from difflib import get_close_matches

from broker.explain import clients, disk, fleet, groups, process, tier, time
from broker.explain.page import NOTHING, Page

SUBJECTS: Mapping[str, Mapping[str, Page]] = {
    "The process": process.PAGES,
    "The disk": disk.PAGES,
    "The tier": tier.PAGES,
    "The fleet": fleet.PAGES,
    "Time": time.PAGES,
    "Clients": clients.PAGES,
    "Groups and transactions": groups.PAGES,
}
PAGES: Mapping[str, Page] = {
    code: page for pages in SUBJECTS.values() for code, page in pages.items()
}
CURRENT_CODES: Mapping[str, str] = {
    page.formerly: code for code, page in PAGES.items() if page.formerly
}
"""A code of an earlier release: the code of today."""
WIDTH = 88


def page_text(code: str) -> str:
    """A page for a terminal. `code` is a code of today (a key of PAGES)."""
    page = PAGES[code]
    text = [code, _indented(_with_former_name(page))]
    if page.advice != NOTHING:
        text += ["", "  What to do:", _indented(page.advice)]
    return "\n".join(text)


def listed() -> str:
    """Every code with the first sentence of its page, by subject."""
    lines = []
    for subject, pages in SUBJECTS.items():
        lines += [
            subject,
            *(f"  {code:<32}{_first_sentence(p.means)}" for code, p in pages.items()),
        ]
        lines.append("")
    return "\n".join(lines).rstrip()


def near(code: str) -> list[str]:
    """Codes that may have been meant."""
    return get_close_matches(code, [*PAGES, *CURRENT_CODES], 3)


def codes_table() -> str:
    """Markdown: all pages, for the documentation."""
    parts = []
    for subject, pages in SUBJECTS.items():
        parts.append(
            f"\n#### {subject}\n\n| code | what has happened | what to do |\n|---|---|---|\n"
        )
        parts += [
            f"| `{code}` | {_with_former_name(page)} | {page.advice} |\n"
            for code, page in pages.items()
        ]
    return "".join(parts).lstrip("\n")


def _with_former_name(page: Page) -> str:
    return page.means + (f" Formerly {page.formerly}." if page.formerly else "")


def _indented(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _first_sentence(text: str) -> str:
    sentence = text.partition(". ")[0].rstrip(".")
    return textwrap.shorten(sentence, WIDTH - 34, placeholder=" ...")
