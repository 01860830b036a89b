"""Whatever bytes lie in a data directory, a dump and a proof end, and name what is wrong."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.dump.by_name import dump_file
from storage.dump.log import Detail
from storage.dump.rows import Damage, Row
from storage.posix import real_env
from storage.verify.directory import survey, verify_partition
from tests.support.records.partition_samples import write_samples

EVERYTHING = Detail(records=True, contents=True)
NAMES = [
    *(f"{0:020d}{suffix}" for suffix in (".log", ".index", ".timeindex", ".zones", ".txnindex")),
    f"{0:020d}.snapshot",
    "leader-epoch-checkpoint",
    "recovery-point-offset-checkpoint",
]
MAGIC_HEADS = st.sampled_from(
    [b"", bytes(8), bytes(16) + b"\0", bytes(16) + b"\1", bytes(16) + b"\2"]
)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Sound files by name."""
    files = write_samples(tmp_path_factory.mktemp("samples") / "t-0")
    return {path.name: path.read_bytes() for path in files}


def dumped(directory: str, name: str, data: bytes) -> Iterator[Row | Damage]:
    path = Path(directory) / name
    path.write_bytes(data)
    return dump_file(real_env().fs, str(path), EVERYTHING)


@settings(deadline=None)
@given(name=st.sampled_from(NAMES), head=MAGIC_HEADS, data=st.binary(max_size=300))
def test_any_bytes_are_rows_or_damage(name: str, head: bytes, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        assert all(isinstance(each, Row | Damage) for each in dumped(directory, name, head + data))


@settings(deadline=None)
@given(data=st.data())
def test_a_changed_file_is_rows_or_damage(samples: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(samples)))
    spoilt = spoil(samples[name], data)
    with tempfile.TemporaryDirectory() as directory:
        assert all(isinstance(each, Row | Damage) for each in dumped(directory, name, spoilt))


@settings(deadline=None)
@given(data=st.data())
def test_a_proof_of_changed_files_ends_with_a_verdict(
    samples: dict[str, bytes], data: st.DataObject
) -> None:
    fs = real_env().fs
    with tempfile.TemporaryDirectory() as directory:
        partition = Path(directory) / "t-0"
        partition.mkdir()
        for name, content in samples.items():
            spoilt = spoil(content, data) if data.draw(st.booleans()) else content
            (partition / name).write_bytes(spoilt)
        whole = survey(fs, directory)
        report = verify_partition(fs, whole.partitions[0], whole, lambda _: None)
    assert report.verdict in {"sound", "wrong", "damaged"}


def spoil(good: bytes, data: st.DataObject) -> bytes:
    """A stretch is overwritten, inserted or cut out."""
    begin = data.draw(st.integers(0, len(good)))
    end = begin + data.draw(st.integers(0, 40))
    return good[:begin] + data.draw(st.binary(max_size=40)) + good[end:]
