"""A broker with TLS, users and rights, a bystander at work, and one attack after the other.

Harm is what the bystander feels, what the broker's memory grows by, what it logs of errors of its
own, and what an attacker learns.
"""

import dataclasses
import json
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Self

from tests.support.attacks.bystander import TOPIC, Bystander, Seen
from tests.support.attacks.target import (
    ADMIN,
    GROUP,
    HIDDEN,
    KEYS,
    MALLORY,
    OPEN,
    PASSWORD,
    Attack,
    Target,
    user,
)
from tests.support.clients.certificates import Authority
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer
from tests.support.ports import free_port
from tests.support.worlds.broker_process import HOROLOG, own_environment
from tests.support.worlds.watched_broker import MIB, SURPRISES, WatchedBroker

MOST_HELD_UP_SECONDS = 2.0
MOST_GROWTH_MIB = 192
LET_GO_SECONDS = 15.0
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Felt(NamedTuple):
    """Cost of one attack. Times are those of the bystander, in ms."""

    name: str
    strikes: int
    cpu_us: float
    """CPU that the broker spent on one strike, without what it spends when nobody attacks."""
    growth_mib: float
    """The peak of memory over what it was before."""
    median: float
    p99: float
    worst: float
    worst_log_in: float
    findings: tuple[str, ...]


class Siege:
    """The broker and its bystander. A context manager."""

    def __init__(self, folder: Path) -> None:
        """Starts both in a folder."""
        _raise_open_files()
        self._stack = ExitStack()
        self._data = folder / "data"
        for name in (ADMIN, MALLORY):
            _add_user(self._data, name)
        authority = Authority()
        ports = [free_port() for _ in range(3)]
        settings = _settings(folder, ports, authority)
        self.broker = self._stack.enter_context(WatchedBroker(self._data, settings))
        http = int(self.broker.process.facts["http"].rsplit(":", 1)[1])
        plain, secure, certified = ports
        self.target = Target(plain, secure, certified, http, authority, folder, 0)
        self._prepare()
        self._bystander = Bystander(self.target)
        self._stack.callback(self._bystander.close)
        self._files = self._open_files()
        self._idle_share = 0.0

    def calm(self, seconds: float) -> Felt:
        """The bystander alone: it comes before all attacks."""

        def nothing(target: Target) -> int:
            time.sleep(target.rest())
            return 0

        spent = self._cpu_seconds()
        felt = self.endure(nothing, seconds)
        self._idle_share = (self._cpu_seconds() - spent) / seconds
        return felt

    def endure(self, attack: Attack, seconds: float) -> Felt:
        """One attack for so long, and what was felt of it."""
        self._bystander.seen()
        self.broker.forget_peak()
        before, cpu, began = self.broker.status("VmRSS"), self._cpu_seconds(), time.monotonic()
        logged = len(self.broker.log_text)
        learned: tuple[str, ...] = ()
        try:
            strikes = attack(dataclasses.replace(self.target, until=time.monotonic() + seconds))
        except Exception as error:  # noqa: BLE001 - what an attacker learns is a finding
            strikes, learned = 0, (repr(error),)
        spent = self._cpu_seconds() - cpu - self._idle_share * (time.monotonic() - began)
        cost = max(0.0, spent) / max(1, strikes) * 1e6
        growth = (self.broker.status("VmHWM") - before) / MIB
        seen = self._bystander.seen()
        findings = (*learned, *self._harm(seen, growth, self.broker.log_text[logged:]))
        told = (f"{attack.__name__}: {each}" for each in findings)
        return Felt(attack.__name__, strikes, cost, growth, *_times(seen), tuple(told))

    def let_go(self) -> tuple[str, ...]:
        """Findings when descriptors of attackers are not free again after a while."""
        ends = time.monotonic() + LET_GO_SECONDS
        while self._open_files() > self._files + 8 and time.monotonic() < ends:
            time.sleep(0.1)
        held = self._open_files() - self._files
        return (f"{held} descriptors are open after all attacks",) if held > 8 else ()

    def _harm(self, seen: Seen, growth_mib: float, log: str) -> list[str]:
        slowest = max([*seen.requests, *seen.log_ins, 0.0])
        found = [f"the bystander failed: {each}" for each in seen.errors[:3]]
        if not self.broker.process.running:
            found.append("the broker is gone")
        if slowest > MOST_HELD_UP_SECONDS:
            found.append(f"the bystander waited for {slowest:.2f} s")
        if growth_mib > MOST_GROWTH_MIB:
            found.append(f"memory grew by {growth_mib:.0f} MiB")
        for sign in (*SURPRISES, "callback_failed", "internal_error"):
            at = log.find(sign)
            if at >= 0:
                found.append(f"the broker logged {log[max(0, at - 200) : at + 500]}")
        return found

    def _prepare(self) -> None:
        """Topics, and Mallory's rights."""
        with user(self.target, ADMIN) as admin:
            topics = [
                {"name": name, "num_partitions": 1, "replication_factor": 1}
                for name in (OPEN, HIDDEN, TOPIC)
            ]
            made = admin.ask("CreateTopics", 7, topics=topics, timeout_ms=5000)
            assert not any(each.error_code for each in made.topics), made
            entries = [
                {
                    "resource_type": kind, "resource_name": name, "resource_pattern_type": pattern,
                    "principal": f"User:{MALLORY}", "host": "*", "operation": 2,
                    "permission_type": 3,
                }
                for kind, name, pattern in ((2, OPEN, 4), (3, GROUP, 4))
            ]  # fmt: skip
            added = admin.ask("CreateAcls", 3, creations=entries)
            assert not any(each.error_code for each in added.results), added

    def _cpu_seconds(self) -> float:
        """Threads that came and went are counted too."""
        fields = (
            Path(f"/proc/{self.broker.process.pid}/stat").read_text().rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _open_files(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.broker.process.pid}/fd").iterdir())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _times(seen: Seen) -> tuple[float, float, float, float]:
    requests = seen.requests if len(seen.requests) > 1 else [0.0, 0.0]
    p99 = statistics.quantiles(requests, n=100)[98]
    worst_log_in = max(seen.log_ins, default=0.0)
    times = (statistics.median(requests), p99, max(requests), worst_log_in)
    median, p99, worst, log_in = (each * 1000 for each in times)
    return median, p99, worst, log_in


def _settings(folder: Path, ports: list[int], authority: Authority) -> Mapping[str, str]:
    names = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
    listeners = (f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True))
    return {
        "listeners": ",".join(listeners),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{_keys(folder)}",
        "sasl.oauthbearer.expected.issuer": NAME,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "ssl.keystore.location": str(authority.server().write(folder / "server.pem")),
        "ssl.truststore.location": str(authority.write(folder / "authority.pem")),
        "listener.name.ssl.ssl.client.auth": "requested",
        "authorizer.class.name": AUTHORIZER,
        "super.users": f"User:{ADMIN}",
    }


def _keys(folder: Path) -> Path:
    """The public keys of a provider of tokens."""
    path = folder / KEYS
    path.write_text(json.dumps(Issuer().published))
    return path


def _add_user(data_dir: Path, name: str) -> None:
    command = [str(HOROLOG), "users", "add", name, "--offline", "--data-dir", str(data_dir)]
    subprocess.run(
        command, input=f"{PASSWORD}\n", text=True, capture_output=True, check=True, timeout=60,
        env=own_environment(),
    )  # fmt: skip


def _raise_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
