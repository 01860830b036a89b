"""The alerts that we ship: they name what we serve, and a real Prometheus fires them."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.metrics.catalogue import CATALOGUE
from protocol.records.builder import build_batch
from tests.support.admin import Admin
from tests.support.watched_broker import WatchedBroker, produce_to

RULES = Path(__file__).resolve().parents[2] / "config" / "prometheus" / "rules.yml"
HELD, HELD_MS = "2026-03-01T12:00:00Z", 1_772_366_400_000
PATIENCE_SECONDS = 60

needs_prometheus = pytest.mark.skipif(
    not (shutil.which("promtool") and shutil.which("prometheus")),
    reason="prometheus is not installed",
)


def test_the_rules_name_metrics_that_we_serve() -> None:
    served = {
        f"{each.name}_total" if each.kind == "counter" else each.name for each in CATALOGUE.metrics
    }
    for each in (*CATALOGUE.durations, *CATALOGUE.spreads):
        served |= {f"{each.name}_{part}" for part in ("bucket", "count")}
    expressions = re.findall(r"^\s*expr:(.*)$", RULES.read_text(), re.MULTILINE)
    named = {name for expression in expressions for name in re.findall(r"horolog_\w+", expression)}
    assert named
    assert named <= served


@needs_prometheus
def test_the_rules_fire_when_they_should() -> None:
    for command in (
        ["check", "rules", str(RULES)],
        ["test", "rules", str(Path(__file__).with_name("prometheus_rules_test.yml"))],
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@contextmanager
def prometheus(target: str, directory: Path) -> Iterator[str]:
    """One that scrapes `target` and judges by our rules, each second; its address."""
    config = directory / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: ['{RULES}']\n"
        "scrape_configs:\n- job_name: horolog\n"
        f"  static_configs: [{{targets: ['{target}']}}]\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["prometheus", f"--config.file={config}", f"--web.listen-address={address}"]
    command += [f"--storage.tsdb.path={directory / 'tsdb'}"]
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield address
    finally:
        process.terminate()
        process.wait(30)


def firing(address: str) -> dict[str, Any]:
    """The labels of the alerts that fire, by name."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/alerts", timeout=5) as answer:
            alerts = json.load(answer)["data"]["alerts"]
    except OSError:
        return {}
    return {a["labels"]["alertname"]: a["labels"] for a in alerts if a["state"] == "firing"}


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
        with prometheus(http, tmp_path) as address:
            end = time.monotonic() + PATIENCE_SECONDS
            admin.post("/api/clock/step", by="70m")
            time.sleep(3)
            assert firing(address) == {}, "ten minutes late"
            admin.post("/api/clock/step", by="10m")
            while not (found := firing(address)):
                assert time.monotonic() < end, (tmp_path / "prometheus.log").read_text()[-2000:]
                time.sleep(0.2)
    assert found.keys() == {"HorologCompactionLate"}
    late = found["HorologCompactionLate"]
    assert (late["topic"], late["partition"]) == ("t", "0")
