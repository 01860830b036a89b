"""Users rely on names: none changes unless the list of them does, and the changelog says so."""

import difflib
from pathlib import Path

from broker.explain.pages import CURRENT_CODES
from tests.contract.surface import LIST, REMEDY, surface

CHANGELOG = Path(__file__).resolve().parents[2] / "docs" / "changelog.md"


def test_the_public_surface_is_the_one_that_is_listed() -> None:
    listed, found = LIST.read_text().splitlines(), surface()
    difference = [
        line
        for line in difflib.unified_diff(listed, found, "listed", "found", lineterm="", n=0)
        if not line.startswith("@@")
    ]
    assert not difference, "\n".join([REMEDY, *difference])


def test_the_list_holds_every_kind_of_name() -> None:
    counts: dict[str, int] = {}
    for line in LIST.read_text().splitlines():
        kind = line.partition(" ")[0]
        counts[kind] = counts.get(kind, 0) + 1
    assert counts.keys() == {"cli", "http", "metric", "event", "setting", "api"}
    assert min(counts.values()) > 40


def test_former_names_are_in_the_changelog() -> None:
    text = CHANGELOG.read_text()
    assert all(f"`{old}`" in text and f"`{new}`" in text for old, new in CURRENT_CODES.items())
