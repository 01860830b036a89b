"""The page for operators names only what there is: settings, metrics, commands, paths, statuses."""

import re
from pathlib import Path

from broker.cli.main import COMMANDS
from broker.explain.pages import PAGES
from broker.http.routes import ROUTES
from broker.metrics.catalogue import CATALOGUE
from broker.topics.config_resources import CONFIRM
from config.names import known_broker_names

ROOT = Path(__file__).resolve().parents[4]
TEXT = (ROOT / "docs" / "operations.md").read_text()
OF_CLIENTS = {
    "delivery.timeout.ms", "message.timeout.ms", "retention.ms", "file.delete.delay.ms",
    "max.message.bytes",
}  # fmt: skip
"""And of topics."""
QUOTED = re.findall(r"`([^`\n]+)`", TEXT)


def test_settings_exist() -> None:
    key = re.compile(r"(?:horolog\.|max\.|socket\.|queued\.|delivery\.|message\.|file\.)[a-z.]+")
    named = {text.partition("=")[0] for text in QUOTED if key.fullmatch(text.partition("=")[0])}
    assert len(named) > 10
    assert named - OF_CLIENTS - {CONFIRM} <= set(known_broker_names())


def test_metrics_exist() -> None:
    served = {f"{m.name}_total" if m.kind == "counter" else m.name for m in CATALOGUE.metrics}
    named = {text for text in QUOTED if re.fullmatch(r"horolog_\w+", text)}
    assert named
    assert named <= served


def test_commands_exist() -> None:
    named = {text.split()[1] for text in QUOTED if text.startswith("horolog ")}
    assert {"explain", "bundle", "verify", "config"} <= named
    assert named <= COMMANDS.keys()


def test_paths_are_answered() -> None:
    served = {route.path for route in ROUTES}
    named = set(re.findall(r"/api/[a-z/]+[a-z]", TEXT))
    assert named
    assert named <= served


def test_the_statuses_are_those_that_are_explained() -> None:
    told = {f"exit-{status}" for status in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    assert told == {code for code in PAGES if code.startswith("exit-")}


def test_files_that_it_leads_to_are_there() -> None:
    paths = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert paths
    assert all((ROOT / "docs" / path).exists() for path in paths)
