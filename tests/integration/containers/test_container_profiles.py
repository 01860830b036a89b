"""Profiles of docker-compose.yml: a Prometheus that scrapes, a client with a broken clock.

Prometheus is Debian's, in an image made here: the same program, without an image registry. Grafana
and the console come from one, so of them only the declaration is checked.
"""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.clients.containers import BASE, ROOT, Container, Stack, compose_command, until
from tests.support.clients.prometheus import rules

PROMETHEUS = "horolog-test-prometheus"
RECIPE = f"""\
FROM {BASE}
RUN apt-get update && apt-get install -y --no-install-recommends prometheus
ENTRYPOINT ["prometheus"]
"""
STORY_SECONDS = 150


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    if not compose_command():
        pytest.skip("neither `docker compose` nor `docker-compose` is there")
    build = ["docker", "build", "--network=host", "--tag", PROMETHEUS, "-"]
    subprocess.run(build, input=RECIPE.encode(), check=True, capture_output=True, timeout=600)
    stack = Stack(prometheus_image=PROMETHEUS)
    try:
        stack.up()
        stack.compose("--profile", "dirty-clock", "up", "--detach", "--no-build")
        yield stack
    finally:
        print(stack.compose("--profile", "dirty-clock", "logs", "--no-color", check=False)[-8000:])
        stack.down()


def asked(stack: Stack, path: str) -> Any:
    url = f"http://127.0.0.1:{stack.prometheus_port}/api/v1/{path}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def test_prometheus_scrapes_both_vocabularies_and_has_all_alerts(stack: Stack) -> None:
    def healthy() -> set[str]:
        targets = (asked(stack, "targets") or {"activeTargets": []})["activeTargets"]
        return {each["labels"]["job"] for each in targets if each["health"] == "up"}

    until("both scrapes", lambda: healthy() == {"horolog", "kafka"})
    groups = asked(stack, "rules")["groups"]
    loaded = {rule["name"] for group in groups for rule in group["rules"]}
    assert loaded == {rule["alert"] for rule in rules()}


def test_a_broken_clock_is_detected_alerted_and_contained_within_two_minutes(stack: Stack) -> None:
    client = Container(stack.compose("ps", "-q", "dirty-clock").split()[0])
    until("the end of the story", lambda: not client.state["Running"], STORY_SECONDS)
    told = [line.split("s  ", 1)[1] for line in client.log.splitlines() if "s  " in line]
    assert client.state["ExitCode"] == 0, client.log
    assert [re.split(":", line)[0] for line in told] == [
        "a client sends microseconds for milliseconds", "detected", "alerted", "contained",
    ]  # fmt: skip


def test_every_profile_is_well_formed_and_mounts_what_is_there() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    profiles = {name for each in services.values() for name in each.get("profiles", ())}
    assert profiles == {"observability", "dirty-clock", "ui", "spark", "secure", "tier", "fleet"}
    for each in services.values():
        for volume in each.get("volumes", ()):
            source = volume.split(":")[0]
            assert not source.startswith("./") or (ROOT / source).exists(), source
        assert all(port.startswith("127.0.0.1:") for port in each.get("ports", ()))
        assert set(each.get("depends_on", ())) <= services.keys()
