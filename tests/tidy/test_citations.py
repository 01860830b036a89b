"""What a page or a docstring cites is there: files by their path from the root or from the page."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CITED = re.compile(r"`(\w[\w./-]*\.(?:py|md|yaml|toml|sh))`")
LINKED = re.compile(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)")
PACKAGES = ("broker", "config", "pipeline", "protocol", "storage")


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    return [ROOT / name for name in listed] or sorted((ROOT / "docs").glob("*.md"))


def is_there(page: Path, name: str) -> bool:
    return any((base / name).exists() for base in (page.parent, ROOT))


def test_files_that_pages_cite_are_there() -> None:
    lost = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages()
        for pattern in (CITED, LINKED)
        for name in pattern.findall(page.read_text())
        if not is_there(page, name)
    ]
    assert lost == []


def test_modules_that_docstrings_cite_are_there() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    cited = re.compile(rf"\b(?:{'|'.join(PACKAGES)})/[\w/]+\.py\b")
    lost = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules
        for name in cited.findall(path.read_text())
        if not (ROOT / name).exists()
    ]
    assert lost == []


RULES = {"semantics": "semantics.md", "time.md": "time.md", "operations": "operations.md"}
SECTION = re.compile(
    r"\b(?:(semantics)(?:\.md)?|(time\.md)|(operations))(?:, section| section|,)? "
    r"([A-C]?\d+(?:\.\d+)*)\b"
)
HEADING = re.compile(r"^#+ ([A-C]?\d+(?:\.\d+)*)[a-z]?\.? ", re.MULTILINE)
NUMBERED = re.compile(r"^(\d+)\. ", re.MULTILINE)
"""A rule of a list: section B3 of operations has B3.1 and so on."""


def test_sections_of_the_rule_book_that_code_cites_are_there() -> None:
    known = {name: sections_of(ROOT / "docs" / "rules" / page) for name, page in RULES.items()}
    folders = [ROOT / package for package in (*PACKAGES, "tests")]
    lost = [
        f"{path.relative_to(ROOT)}: {name} {section}"
        for folder in folders
        for path in folder.rglob("*.py")
        for *names, section in SECTION.findall(path.read_text())
        for name in filter(None, names)
        if section not in known[name]
    ]
    assert lost == []


def sections_of(page: Path) -> set[str]:
    text = page.read_text()
    found = set(HEADING.findall(text))
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE):
        number = part.partition(".")[0].split(" ")[0]
        found |= {f"{number}.{each}" for each in NUMBERED.findall(part)}
    return found
