"""The README's commands for a container, as they are written but for the names and the port."""

import re
import subprocess

from tests.support.clients.containers import IMAGE, ROOT, docker, fresh_name
from tests.support.ports import free_port

BLOCK = re.compile(
    r"<!-- executed by tests/integration/containers/test_container_readme.py -->\n```sh\n(.*?)```",
    re.DOTALL,
)


def test_the_commands_of_the_readme() -> None:
    (block,) = BLOCK.findall((ROOT / "README.md").read_text())
    lines = block.splitlines()
    assert lines[0] == "docker build -t horolog ."  # done already, by the name of the tests
    name = fresh_name()
    script = "\n".join(lines[1:]).replace("9092:9092", f"{free_port()}:9092")
    script = script.replace("exec horolog horolog", f"exec {name} horolog")
    script = script.replace("/data horolog", f"/data {IMAGE}").replace("horolog:/data", "/data")
    script = re.sub(r"(--name|logs|stop) horolog\b", rf"\1 {name}", script)
    script = script.replace("docker logs", "sleep 3; docker logs")
    try:
        done = subprocess.run(
            ["sh", "-euc", script], capture_output=True, text=True, timeout=100, check=False
        )
    finally:
        docker("rm", "--force", "--volumes", name, check=False)
    assert done.returncode == 0, done.stderr
    assert "horolog ready bootstrap=localhost:9092" in done.stdout
    assert "next: kcat -L -b localhost:9092\n" in done.stdout
    assert "ready\n" in done.stdout.splitlines(keepends=True)
