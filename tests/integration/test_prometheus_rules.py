"""The alerts that we ship name what we serve, lead to a runbook, and fire when they should."""

import re
import subprocess
import time
import urllib.request
from pathlib import Path

import yaml

from broker.metrics.catalogue import CATALOGUE
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.clients.prometheus import (
    ROOT,
    RULES,
    names_in,
    needs_prometheus,
    panels,
    prometheus,
    rules,
)
from tests.support.page.runbook_page import PAGE, SOURCE, anchor
from tests.support.worlds.watched_broker import WatchedBroker, produce_to

TESTS = [
    Path(__file__).with_name(f"prometheus_{of}_test.yml") for of in ("rules", "alerts", "days")
]
HELD, HELD_MS = "2026-03-01T12:00:00Z", 1_772_366_400_000
OF_THE_PROCESS = {
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
    "process_open_fds",
}  # a test of the scrape sees that they are there


def served() -> set[str]:
    """The names that a scrape of /metrics has."""
    found = {
        f"{each.name}_total" if each.kind == "counter" else each.name for each in CATALOGUE.metrics
    }
    for each in (*CATALOGUE.durations, *CATALOGUE.spreads):
        found |= {f"{each.name}_{part}" for part in ("bucket", "count")}
    return found | OF_THE_PROCESS


def test_rules_and_dashboards_name_metrics_that_we_serve() -> None:
    expressions = [*(rule["expr"] for rule in rules()), *(text for _, text in panels())]
    assert len(expressions) > 60
    for expression in expressions:
        named = names_in(expression)
        assert named or expression.startswith("up{"), expression
        assert named <= served(), expression


def test_the_dashboards_are_those_that_are_declared() -> None:
    check = [str(ROOT / "scripts" / "dashboards"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_alert_leads_to_its_section_of_the_runbook() -> None:
    served, written = anchors(PAGE.read_text()), headings(SOURCE.read_text())
    assert written == {rule["alert"] for rule in rules()}, "one section an alert"
    for rule in rules():
        place, _, section = rule["annotations"]["runbook_url"].partition("#")
        assert place == f"{{{{ $externalURL }}}}/consoles/{PAGE.name}"
        assert section == anchor(rule["alert"])
        assert section in served
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}


def anchors(html: str) -> set[str]:
    return set(re.findall(r'<h3 id="([\w-]+)">', html))


def headings(text: str) -> set[str]:
    return set(re.findall(r"^### (\w+)$", text, re.MULTILINE))


@needs_prometheus
def test_the_rules_fire_when_they_should(tmp_path: Path) -> None:
    bare = yaml.safe_load(RULES.read_text())
    for group in bare["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]
    (tmp_path / "horolog.yml").write_text(yaml.safe_dump(bare))
    of_rules, *of_bare = TESTS
    for each in of_bare:
        (tmp_path / each.name).write_text(each.read_text())
    tests = [str(of_rules), *(str(tmp_path / each.name) for each in of_bare)]
    for command in (["check", "rules", str(RULES)], ["test", "rules", *tests]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_test_that_sees_it_fire() -> None:
    tested = set()
    for each in TESTS:
        for case in yaml.safe_load(each.read_text())["tests"]:
            tested |= {each["alertname"] for each in case["alert_rule_test"] if each["exp_alerts"]}
    assert tested == {rule["alert"] for rule in rules()}


@needs_prometheus
def test_a_real_prometheus_tells_that_compaction_is_late(tmp_path: Path) -> None:
    off = {"log.cleaner.enable": "false"}
    options = ["--test-clock", HELD]
    with WatchedBroker(tmp_path / "data", off, options=options) as broker:
        http = broker.process.facts["http"]
        admin = Admin(http)
        broker.make_topic("t", cleanup_policy="compact", max_compaction_lag_ms="3600000")
        with broker.client() as client:
            batch = build_batch([(HELD_MS, b"key", b"value")])
            assert produce_to(client, batch).error_code == 0
        with prometheus(http, tmp_path) as watcher:
            admin.post("/api/clock/step", by="70m")
            time.sleep(3)
            assert watcher.firing() == {}, "ten minutes late"
            admin.post("/api/clock/step", by="10m")
            watcher.until("an alert", watcher.firing)
            found = watcher.firing()
            page, _, section = watcher.runbook_url("HorologCompactionLate").partition("#")
            with urllib.request.urlopen(page, timeout=10) as answer:
                assert answer.headers["Content-Type"].startswith("text/html")
                assert section in anchors(answer.read().decode())
    assert found.keys() == {"HorologCompactionLate"}
    late = found["HorologCompactionLate"]
    assert (late["topic"], late["partition"]) == ("t", "0")
