"""No imports run in a circle, over however many modules; type-only and late ones count."""

from graphlib import TopologicalSorter

import pytest


def test_no_imports_run_in_a_circle() -> None:
    grimp = pytest.importorskip("grimp")  # comes with the tools of scripts/check
    graph = grimp.build_graph("protocol", "storage", "config", "broker", "pipeline", cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    TopologicalSorter(imports).prepare()
