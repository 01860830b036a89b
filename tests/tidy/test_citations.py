"""What a page or a docstring cites is there: files, headings, sections of the rule book."""

import functools
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.page.runbook_page import PAGE, anchor, page

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CITED = re.compile(r"`(\w[\w./-]*\.(?:py|md|yaml|toml|sh))`")
LINKED = re.compile(r"\]\(([^)\s:]+)\)")
PACKAGES = ("broker", "config", "pipeline", "protocol", "storage")
SOURCES = (*PACKAGES, "tests")

PAGE_NAME = re.compile(r"(?<![\w/.-])((?:[\w-]+/)*[\w-]+\.md)\b")
SECTION = r"(?:[A-C]\d*|\d+)(?:\.\d+)*[a-z]?"
SECTIONS = re.compile(
    r"\b(semantics|time(?=\.md)|operations)(?:\.md)?,?(?: sections?)? "
    rf"({SECTION}\b(?:(?:,\s+|\s+and\s+|\s+to\s+|-){SECTION}\b)*)"
)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NUMBER = re.compile(rf"({SECTION})\.? ")
RULE = re.compile(r"^(\d+)\. ", re.MULTILINE)
"""A rule of a list: section B3 has B3.1 and so on."""


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    found = [ROOT / name for name in listed] or [*ROOT.glob("*/README.md"), *DOCS.rglob("*.md")]
    return [page for page in found if page.exists()]


def modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def is_there(page: Path, name: str) -> bool:
    return any((base / name).exists() for base in (page.parent, ROOT))


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """Anchors of the headings of a page, as GitHub and most site generators make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return frozenset(anchor(heading) for heading in HEADING.findall(text))


@functools.cache
def sections(rules: str) -> frozenset[str]:
    """Numbers of the sections of a page of the rule book, and of the rules in their lists."""
    found: set[str] = set()
    for part in re.split(r"^#+ ", (DOCS / "rules" / rules).read_text(), flags=re.MULTILINE)[1:]:
        if number := NUMBER.match(part):
            found |= {number[1], *(f"{number[1]}.{rule}" for rule in RULE.findall(part))}
    return frozenset(found)


def lost_sections(text: str) -> list[str]:
    return [
        f"{name}.md {number}"
        for name, numbers in SECTIONS.findall(text)
        for number in re.findall(SECTION, numbers)
        if number not in sections(f"{name}.md")
    ]


def test_files_that_pages_cite_are_there() -> None:
    lost = [
        f"{name_of(page)}: {name}"
        for page in pages()
        for name in CITED.findall(page.read_text())
        if not is_there(page, name)
    ]
    assert lost == []


def test_links_of_pages_lead_to_a_file_and_a_heading() -> None:
    lost = [
        f"{name_of(page)}: {link}"
        for page in pages()
        for link in LINKED.findall(page.read_text())
        if not leads_somewhere(page, link)
    ]
    assert lost == []


def leads_somewhere(page: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    target = page.parent / name if name else page
    return target.exists() and (not heading or heading in anchors(target))


def test_modules_that_docstrings_cite_are_there() -> None:
    cited = re.compile(rf"\b(?:{'|'.join(PACKAGES)})/[\w/]+\.py\b")
    lost = [
        f"{name_of(path)}: {name}"
        for path in modules(*PACKAGES)
        for name in cited.findall(path.read_text())
        if not (ROOT / name).exists()
    ]
    assert lost == []


def test_pages_that_code_cites_are_there() -> None:
    rules = {page.name for page in (DOCS / "rules").glob("*.md")}
    lost = [
        f"{name_of(path)}: {name}"
        for path in modules(*PACKAGES)
        for name in PAGE_NAME.findall(path.read_text())
        if name not in rules and not is_there(DOCS / "README.md", name)
    ]
    assert lost == []


def test_sections_of_the_rule_book_that_are_cited_are_there() -> None:
    lost = [
        f"{name_of(path)}: {section}"
        for path in modules(*SOURCES)
        if path != Path(__file__)
        for section in lost_sections(path.read_text())
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("Rules (semantics.md 7.1, 7.3; time.md 2).", []),
        ("semantics.md 6.1 and 99; time.md 1", ["semantics.md 99"]),
        ("(operations B3.1), (operations B3.99)", ["operations.md B3.99"]),
        ("semantics.md, section 41.3, 5", ["semantics.md 41.3"]),
        ("time.md 2 to 70", ["time.md 70"]),
        ("three operations 9 times", ["operations.md 9"]),
    ],
)
def test_a_section_that_is_not_there_is_found(text: str, lost: list[str]) -> None:
    assert lost_sections(text) == lost


def test_the_runbook_that_prometheus_serves_is_current() -> None:
    assert PAGE.read_text() == page(), "scripts/docs brings it up to date"
