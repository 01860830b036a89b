"""The image in a container engine: built once per run of the tests, run, asked, removed.

Everything goes through the commands `docker` and `docker-compose` (or `docker compose`), as people
use them. `why_not` says why a machine cannot run these tests; ENGINE_START may name a
command that starts an engine there.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[3]
IMAGE = "horolog:test"
BASE = "debian:bookworm-slim"
HARDENED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--pids-limit=256")
BUILD_SECONDS, PATIENCE_SECONDS = 900, 60


class ContainerFailed(AssertionError):  # noqa: N818 - reads as the sentence it is
    """A command of the engine failed, or a container did not do what was waited for."""


def docker(*arguments: str, seconds: float = 120, check: bool = True) -> str:
    """Output of a command, both streams; ContainerFailed unless it exits 0."""
    return _run(["docker", *arguments], seconds=seconds, check=check)


@cache
def compose_command() -> tuple[str, ...]:
    """`docker compose` where the engine has it, else `docker-compose`; empty for neither."""
    if _answers("docker", "compose", "version"):
        return ("docker", "compose")
    return ("docker-compose",) if shutil.which("docker-compose") else ()


@cache
def why_not() -> str | None:
    """The reason why no container can be run here; None when they can."""
    start = os.environ.get("ENGINE_START")
    if start and not _answers("docker", "info"):
        subprocess.run([start], capture_output=True, timeout=600, check=False)
    if not shutil.which("docker"):
        return "there is no command docker"
    if not _answers("docker", "info"):
        return "no container engine answers (docker info)"
    if not _answers("docker", "image", "inspect", BASE) and not _answers("docker", "pull", BASE):
        return f"the base image {BASE} is not here and cannot be pulled"
    return None


@cache
def image() -> str:
    """Builds the image from the checkout; its name. The engine's cache makes a second one cheap."""
    docker("build", "--network=host", "--tag", IMAGE, str(ROOT), seconds=BUILD_SECONDS)
    return IMAGE


def fresh_name() -> str:
    """A name for a container or a project that tells which process made it."""
    return f"horolog-test-{os.getpid()}-{uuid4().hex[:12]}"


def remove_leftovers() -> None:
    """Removes what runs of the tests left that were killed, their processes being gone."""
    for kind, *listing in (("container", "--all"), ("network",), ("volume",)):
        form = "{{.Names}}" if kind == "container" else "{{.Name}}"
        for name in docker(kind, "ls", *listing, "--format", form).split():
            made_by = re.match(r"horolog-test-(\d+)-", name)
            if made_by and not Path("/proc", made_by[1]).exists():
                docker(kind, "rm", *(() if kind == "network" else ("--force",)), name, check=False)


def until(what: str, holds: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Returns as soon as `holds()` is true; ContainerFailed names `what` when it never is."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ContainerFailed(f"{what}: not within {seconds} s")
        time.sleep(0.1)


class Container:
    """One container, by its name; removed with its volumes at the end."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def started(cls, *options: str, command: Sequence[str] = ()) -> Self:
        """`docker run --detach OPTIONS IMAGE COMMAND`."""
        name = fresh_name()
        docker("run", "--detach", "--name", name, *options, image(), *command)
        return cls(name)

    @property
    def state(self) -> dict[str, Any]:
        """The engine's account of it: Status, Running, ExitCode, OOMKilled, Health..."""
        state: dict[str, Any] = json.loads(
            docker("inspect", "--format", "{{json .State}}", self.name)
        )
        return state

    @property
    def health(self) -> str:
        """starting, healthy or unhealthy."""
        status: str = self.state["Health"]["Status"]
        return status

    @property
    def log(self) -> str:
        """All it has said."""
        return docker("logs", self.name)

    @property
    def address(self) -> str:
        """Its address in the engine's own network."""
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return docker("inspect", "--format", form, self.name).strip()

    def execute(self, *command: str, check: bool = True) -> str:
        """Output of a command in it."""
        return docker("exec", self.name, *command, check=check)

    def until_ready(self) -> None:
        """Until the broker says so; ContainerFailed with its log when it ends before."""

        def ready() -> bool:
            if "horolog ready" in self.log:
                return True
            if not self.state["Running"]:
                raise ContainerFailed(f"it ended: {self.log}")
            return False

        until("a ready broker", ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            print(self.log[-8000:])
        docker("rm", "--force", "--volumes", self.name, check=False)


class Stack:
    """docker-compose.yml as a project of its own, with free ports of the host."""

    def __init__(
        self,
        *,
        prometheus_image: str = "",
        spark_image: str = "",
        store_image: str = "",
        catalog_image: str = "",
    ) -> None:
        self.project = fresh_name()
        self.port, self.http_port = free_port(), free_port()
        self.prometheus_port, self.secure_port = free_port(), free_port()
        self.tier_port = free_port()
        self.fleet_ports = {number: free_port() for number in (1, 2, 3)}
        self._environment = {
            "PROMETHEUS_IMAGE": prometheus_image,
            "SPARK_IMAGE": spark_image,
            "STORE_IMAGE": store_image,
            "CATALOG_IMAGE": catalog_image,
            "PROMETHEUS_PORT": str(self.prometheus_port),
            "HOROLOG_IMAGE": image(),
            "HOROLOG_PORT": str(self.port),
            "HOROLOG_HTTP_PORT": str(self.http_port),
            "HOROLOG_SECURE_PORT": str(self.secure_port),
            "HOROLOG_TIER_PORT": str(self.tier_port),
            **{f"HOROLOG_FLEET_{n}_PORT": str(port) for n, port in self.fleet_ports.items()},
        }

    @property
    def bootstrap(self) -> str:
        """Address for clients on the host."""
        return f"localhost:{self.port}"

    @property
    def network(self) -> str:
        """The name of its network."""
        return f"{self.project}_default"

    @property
    def broker(self) -> Container:
        """The container of the broker."""
        return Container(self.compose("ps", "-q", "broker").split()[0])

    def compose(self, *arguments: str, check: bool = True) -> str:
        """Output of `docker-compose ARGUMENTS`."""
        command = [*compose_command(), "-f", str(ROOT / "docker-compose.yml"), "-p", self.project]
        return _run([*command, *arguments], check=check, environment=self._environment)

    def up(self) -> None:
        """Until the broker is healthy."""
        self.compose("up", "--detach", "--no-build", "broker")
        until("a healthy broker", lambda: self.broker.health == "healthy")

    def down(self) -> None:
        """Nothing of it stays, volumes included."""
        self.compose("down", "--volumes", "--timeout", "1", check=False)


def _answers(*command: str) -> bool:
    return bool(shutil.which(command[0])) and not (
        subprocess.run(command, capture_output=True, timeout=300, check=False).returncode
    )


def _run(
    command: Sequence[str],
    *,
    seconds: float = 120,
    check: bool = True,
    environment: Mapping[str, str] | None = None,
) -> str:
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if check and done.returncode:
        raise ContainerFailed(
            f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-4000:]}"
        )
    return done.stdout
