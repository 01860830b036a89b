"""No imports run in a circle, over however many modules; type-only and late ones count."""

from graphlib import TopologicalSorter

import pytest

LOCATOR = "broker.daemon.app"
"""Still imported by those that take their services from it, for the type alone."""
TAKERS = 21


def test_no_imports_run_in_a_circle() -> None:
    grimp = pytest.importorskip("grimp")  # comes with the tools of scripts/check
    graph = grimp.build_graph("protocol", "storage", "config", "broker", "pipeline", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    takers = [
        name
        for name, others in imports.items()
        if LOCATOR in others and not name.startswith("broker.daemon.")
    ]
    assert len(takers) <= TAKERS, "who needs a service gets that service"
    TopologicalSorter({name: others - {LOCATOR} for name, others in imports.items()}).prepare()
