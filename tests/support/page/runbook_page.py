"""The runbook as a page that Prometheus serves, made from docs/runbook.md.

Prometheus serves the files of `--web.console.templates` below `/consoles/`, so a link of an alert
opens in a browser wherever the alert is shown, also where no broker answers.

usage: python -m tests.support.page.runbook_page --write | --check
"""

import re
import sys
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "docs" / "runbook.md"
PAGE = ROOT / "config" / "prometheus" / "consoles" / "runbook.html"
HEAD = """\
<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<title>Horolog: runbook</title>
<style>
body { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 sans-serif; }
code { background: #eee; padding: 0 .2em; }
:target { background: #ffd; }
</style>
"""


def anchor(heading: str) -> str:
    """The anchor of a heading, as GitHub and most site generators make it."""
    shown = re.sub(r"\]\([^)]*\)", "", heading)
    return re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")


def page() -> str:
    """HTML of the runbook; its headings have anchors."""
    text = SOURCE.read_text(encoding="utf-8")
    assert "](" not in text, "relative links lead nowhere in Prometheus"
    assert "{{" not in text, "Prometheus would take this for a template"
    renderer = MarkdownIt("commonmark").enable("table")
    tokens = renderer.parse(text)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", anchor(inline.content))
    return HEAD + str(renderer.renderer.render(tokens, renderer.options, {}))


def main() -> int:
    wanted = page()
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    if sys.argv[1:] == ["--write"]:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(wanted, encoding="utf-8")
        print(f"{PAGE.name}: written")
        return 0
    print(f"{PAGE.name}: out of date; scripts/docs writes it")
    return 1


if __name__ == "__main__":
    sys.exit(main())
