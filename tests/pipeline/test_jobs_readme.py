"""What the page of tasks says of archives works as it is written there."""

import re
import subprocess
from pathlib import Path

from confluent_kafka import Producer

from tests.support.worlds.node_process import NodeProcess

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(
    r"<!-- executed by tests/pipeline/test_jobs_readme.py -->\n```sh\n(.*?)```", re.DOTALL
)


def test_a_topic_is_archived_and_then_what_is_new(node: NodeProcess, tmp_path: Path) -> None:
    (commands,) = BLOCK.findall((ROOT / "docs" / "jobs.md").read_text())
    producer = Producer({"bootstrap.servers": node.bootstrap})
    for n in range(10):
        producer.produce("events", b"%d" % n)
    assert producer.flush(30) == 0
    text = commands.replace("127.0.0.1:9092", node.bootstrap).replace(".venv", f"{ROOT}/.venv")
    done = subprocess.run(
        ["sh", "-eu"], input=text, capture_output=True, text=True, timeout=110, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Every sum closes: 10 offsets = 0 holes + 10 records" in done.stdout
    assert done.stdout.endswith("Nothing is new.\n")
    assert list((tmp_path / "archive" / "records").rglob("*.parquet"))
