"""kcat: a file goes in and comes out identical; offsets by time; a range of time is consumed."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.conformance.conftest import MakeTopic

EXERCISES = {
    "kcat": "files in and out, keys, codecs, offsets and ranges by time",
}

LINES = 100_000
pytestmark = pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed")


def kcat(bootstrap: str, *arguments: str) -> str:
    done = subprocess.run(
        ["kcat", "-b", bootstrap, "-q", *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A keyed log file as a user may have one."""
    path = tmp_path / "lines.txt"
    levels = ("INFO", "WARN", "ERROR", "DEBUG")
    path.write_text(
        "".join(
            f"host-{n % 97}\t{n:07d} {levels[n % 4]} request took {n * 37 % 1013} ms, naïve ✓\n"
            for n in range(LINES)
        )
    )
    return path


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_file_of_keyed_lines_comes_back_identical(
    bootstrap: str, make_topic: MakeTopic, source: Path, codec: str
) -> None:
    topic = make_topic()
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-K", "\t", "-z", codec, "-l", str(source))
    back = kcat(bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-f", "%k\t%s\n")
    assert back == source.read_text()


def test_keys_spread_over_partitions_keep_their_order(
    bootstrap: str, make_topic: MakeTopic, source: Path
) -> None:
    topic = make_topic(partitions=4)
    kcat(bootstrap, "-P", "-t", topic, "-K", "\t", "-l", str(source))
    back = kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-f", "%k\t%s\n")
    assert sorted(back.splitlines()) == sorted(source.read_text().splitlines())
    of_one_host = [line for line in back.splitlines() if line.startswith("host-42\t")]
    assert of_one_host == sorted(of_one_host)


@pytest.fixture
def three_parts(bootstrap: str, make_topic: MakeTopic, tmp_path: Path) -> tuple[str, list[int]]:
    """A topic that got a hundred lines three times, and the moments between them (ms)."""
    topic, moments = make_topic(), []
    for part in range(3):
        lines = tmp_path / f"part-{part}"
        lines.write_text("".join(f"{part}-{n}\n" for n in range(100)))
        kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-l", str(lines))
        time.sleep(0.02)
        moments.append(time.time_ns() // 1_000_000)
        time.sleep(0.02)
    return topic, moments


def test_offsets_by_time(bootstrap: str, three_parts: tuple[str, list[int]]) -> None:
    topic, moments = three_parts
    for moment, offset in ((1, 0), (moments[0], 100), (moments[1], 200), (moments[2], -1)):
        assert (
            kcat(bootstrap, "-Q", "-t", f"{topic}:0:{moment}") == f"{topic} [0] offset {offset}\n"
        )


def test_the_ends_of_a_partition(bootstrap: str, three_parts: tuple[str, list[int]]) -> None:
    topic, _ = three_parts
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-2") == f"{topic} [0] offset 0\n"
    assert kcat(bootstrap, "-Q", "-t", f"{topic}:0:-1") == f"{topic} [0] offset 300\n"


def test_a_range_of_time_is_consumed(bootstrap: str, three_parts: tuple[str, list[int]]) -> None:
    topic, (start, stop, _) = three_parts
    between = ("-o", f"s@{start}", "-o", f"e@{stop}", "-e", "-f", "%o %s\n")
    back = kcat(bootstrap, "-C", "-t", topic, "-p", "0", *between)
    assert back == "".join(f"{100 + n} 1-{n}\n" for n in range(100))


def test_metadata_lists_the_topic(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    listing = subprocess.run(
        ["kcat", "-b", bootstrap, "-L", "-t", topic], capture_output=True, text=True, check=True
    ).stdout
    assert f'topic "{topic}" with 3 partitions' in listing
