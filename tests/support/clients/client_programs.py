"""Clients of many languages as processes that write, or subscribe and say what they read.

Owns how each is started. All speak alike: "written COUNT" at the end of `produce`; in `consume`,
until they are killed, "read PARTITION OFFSET" for each record, which they commit soon. Members
of groups have a session time-out of three seconds (Java: four, as its tool beats every three).
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.support.clients import go_programs, node_packages
from tests.support.clients.client_security import ClientSecurity
from tests.support.kafka import kafka_oracle

CONFORMANCE = Path(__file__).resolve().parents[2] / "conformance"
PRODUCE_SECONDS = 60
ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls"


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """One client library; `absent` says why it cannot run on this machine, or nothing."""

    name: str
    language: str
    command: Callable[[str, str, str, str], list[str]]
    absent: Callable[[], str]
    settings: Callable[[], dict[str, str]] = dict

    takes_file: bool = False
    """True when it takes its security settings from a file, not from the environment."""

    def produce(
        self, bootstrap: str, topic: str, count: int, security: ClientSecurity | None = None
    ) -> "Running":
        """Begins to write `count` records."""
        return Running(self, security, "produce", bootstrap, topic, str(count))

    def subscribe(
        self, bootstrap: str, topic: str, group: str, security: ClientSecurity | None = None
    ) -> "Running":
        """A member of a group."""
        return Running(self, security, "consume", bootstrap, topic, group)


class Running:
    """A client at work; its lines go to a file, so that it never waits for a reader."""

    def __init__(
        self, program: ClientProgram, security: ClientSecurity | None, verb: str, *arguments: str
    ) -> None:
        self.program = program
        command, environment = program.command(verb, *arguments), {**os.environ}
        if security is not None and program.takes_file:
            folder = Path(tempfile.mkdtemp())
            command += ["--command-config", str(security.write_properties(folder))]
            environment["JAVA_TOOL_OPTIONS"] = (
                f"{ALLOWED_URLS}=file://{folder}/{security.name}.token"
            )
        elif security is not None:
            environment |= security.environment()
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._said = reading
        self._text = b""
        self._child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=writing, stderr=subprocess.DEVNULL,
            env={**environment, **program.settings()}, cwd=CONFORMANCE.parents[1],
        )  # fmt: skip
        os.close(writing)

    def lines(self) -> list[str]:
        """All that it has said so far in whole lines."""
        try:
            while chunk := os.read(self._said, 65536):
                self._text += chunk
        except BlockingIOError:
            pass
        whole, _, _ = self._text.rpartition(b"\n")
        return whole.decode().splitlines()

    def read(self) -> list[tuple[int, int]]:
        """Partition and offset of each record that it has read, in its order."""
        return [record for line in self.lines() if (record := _record(line)) is not None]

    @property
    def running(self) -> bool:
        return self._child.poll() is None

    def wait(self) -> int:
        """Its exit code."""
        return self._child.wait(PRODUCE_SECONDS)

    def kill(self) -> None:
        """kill -9."""
        self._child.kill()
        self._child.wait(30)

    def close(self) -> None:
        """Nothing of it is left."""
        self.kill()
        os.close(self._said)


def _record(line: str) -> tuple[int, int] | None:
    word, _, rest = line.partition(" ")
    if word == "read":
        partition, offset = rest.split()
        return int(partition), int(offset)
    if line.startswith("{") and '"record_data"' in line:
        said = json.loads(line)
        return int(said["partition"]), int(said["offset"])
    return None


def _python(name: str) -> ClientProgram:
    script = str(CONFORMANCE / "python_subscriber.py")
    return ClientProgram(
        name, "Python", lambda *words: [sys.executable, script, name, *words], lambda: ""
    )


def _go(name: str) -> ClientProgram:
    return ClientProgram(
        name,
        "Go",
        lambda *words: [str(go_programs.built_program(CONFORMANCE / "go")), name, *words],
        lambda: "" if go_programs.go() else "there is no Go 1.26 here",
    )


def _node_command(*words: str) -> list[str]:
    commands = node_packages.commands()
    assert commands is not None
    return [*commands["node"], str(CONFORMANCE / "kafkajs" / "subscriber.js"), *words]


def _node_settings() -> dict[str, str]:
    folder = CONFORMANCE.parent / "integration" / "kafkajs"
    return {"NODE_PATH": str(node_packages.installed_packages(folder))}


def _java_command(verb: str, bootstrap: str, topic: str, argument: str) -> list[str]:
    tool = [sys.executable, str(kafka_oracle.SCRIPT), "tool"]
    at = ["--bootstrap-server", bootstrap, "--topic", topic]
    if verb == "produce":
        return [*tool, "org.apache.kafka.tools.VerifiableProducer", *at, "--max-messages", argument]
    return [
        *tool, "org.apache.kafka.tools.VerifiableConsumer", *at, "--group-id", argument,
        "--reset-policy", "earliest", "--session-timeout", "4000", "--verbose",
    ]  # fmt: skip


CLIENTS = (
    _python("confluent-kafka"),
    _python("kafka-python"),
    _python("aiokafka"),
    ClientProgram(
        "kafkajs",
        "JavaScript",
        _node_command,
        lambda: "" if node_packages.commands() else "there is no Node.js here",
        _node_settings,
    ),
    _go("franz-go"),
    _go("sarama"),
    _go("kafka-go"),
    ClientProgram(
        "kafka-clients",
        "Java",
        _java_command,
        lambda: "" if kafka_oracle.available() else "needs java and mvn",
        takes_file=True,
    ),
)
