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
