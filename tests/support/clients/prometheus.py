"""A real Prometheus that scrapes a broker and judges by our rules, and what it says."""

import json
import re
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
RULES = ROOT / "config" / "prometheus" / "rules.yml"
DASHBOARDS = ROOT / "config" / "grafana" / "dashboards"
PATIENCE_SECONDS, STARTING = 60, 503

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")),
    reason="prometheus is not installed",
)


def rules() -> list[dict[str, Any]]:
    """All alerts that we ship."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels(without: str = "") -> list[tuple[str, str]]:
    """(panel, expression) of all dashboards but one, for every instance and topic."""
    found = []
    for file in sorted(set(DASHBOARDS.glob("*.json")) - {DASHBOARDS / without}):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", ()):
                plain = re.sub(r"\$(instance|topic)\b", ".*", target["expr"])
                plain = plain.replace("$__rate_interval", "1m")
                assert "$" not in plain, plain
                found.append((panel["title"], plain))
    return found


def names_in(expression: str) -> set[str]:
    """The metrics that an expression asks for."""
    bare = re.sub(r'"[^"]*"', "", expression)
    return set(re.findall(r"\b(?:horolog|process|kafka)_\w+", bare))


def hurried(seconds: int) -> str:
    """The rules with no window longer than that, and no wait: to see them fire and clear."""
    text = re.sub(r"^ +for: .*\n", "", RULES.read_text(), flags=re.MULTILINE)
    text = re.sub(r"\[\d+[mh]\]", f"[{seconds}s]", text)
    return re.sub(r"offset \d+[mh]", f"offset {seconds}s", text)


class Prometheus:
    """The one at an address."""

    def __init__(self, address: str, log: Path) -> None:
        self.address = address
        self._log = log

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; AssertionError with its error, OSError while it starts."""
        url = f"http://{self.address}/api/v1/{path}?{urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == STARTING:
                raise
            raise AssertionError(f"{url}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression, now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def has_scraped(self) -> bool:
        """True when it is up and has seen the broker."""
        try:
            return bool(self.query("horolog_ready"))
        except OSError:
            return False

    def firing(self) -> dict[str, Mapping[str, str]]:
        """The labels of the alerts that fire, by name."""
        alerts = self.ask("alerts")["alerts"]
        return {a["labels"]["alertname"]: a["labels"] for a in alerts if a["state"] == "firing"}

    def runbook_url(self, name: str) -> str:
        """Runbook link of the alert `name`, which fires."""
        alerts = self.ask("alerts")["alerts"]
        (url,) = {
            a["annotations"]["runbook_url"] for a in alerts if a["labels"]["alertname"] == name
        }
        return str(url)

    def until(self, what: str, holds: Callable[[], object]) -> None:
        """Returns as soon as `holds()`; fails with `what` and the log's end when it never does."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > end:
                told = self._log.read_text()[-1000:]
                raise AssertionError(f"{what}; firing: {sorted(self.firing())}; {told}")
            time.sleep(0.2)


@contextmanager
def prometheus(target: str, directory: Path, rules_text: str | None = None) -> Iterator[Prometheus]:
    """One that scrapes `target` and judges, each second; by our rules or by others."""
    (directory / "rules.yml").write_text(RULES.read_text() if rules_text is None else rules_text)
    config = directory / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        "rule_files: [rules.yml]\n"
        "scrape_configs:\n- job_name: horolog\n"
        f"  static_configs: [{{targets: ['{target}']}}]\n"
    )
    address = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={config}", f"--web.listen-address={address}"]
    command += [f"--storage.tsdb.path={directory / 'tsdb'}", f"--web.external-url=http://{address}"]
    command += [f"--web.console.templates={RULES.with_name('consoles')}"]
    log_file = directory / "prometheus.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    watcher = Prometheus(address, log_file)
    try:
        watcher.until("a scrape", watcher.has_scraped)
        yield watcher
    finally:
        process.terminate()
        process.wait(30)
