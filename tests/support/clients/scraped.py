"""A metric of a running broker, by its name."""

import re
import urllib.request

from tests.support.worlds.node_process import NodeProcess


def metric_of(node: NodeProcess, name: str) -> float:
    """The sum of all its series; 0 when it has none."""
    with urllib.request.urlopen(f"http://{node.facts['http']}/metrics") as answer:
        text = answer.read().decode()
    return sum(
        float(value) for value in re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", text, re.MULTILINE)
    )
