"""How far a reader of committed data may read in a log that another process has written."""

import struct

import pytest

from protocol.records.builder import build_batch
from storage.files.layout import LOG, segment_name
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import LOG_PATH, UNCLEAN, open_log, reopened

ABORT, COMMIT = 0, 1
NOW = 1_700_000_000_000


def data(offset: int, producer: int) -> bytes:
    """One record in a transaction."""
    return bytes(
        build_batch(
            [(NOW, b"k", b"v")], base_offset=offset, leader_epoch=0, producer_id=producer,
            producer_epoch=0, base_sequence=0, transactional=True,
        )
    )  # fmt: skip


def marker(offset: int, producer: int, kind: int) -> bytes:
    row = (NOW, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 0))
    return bytes(
        build_batch(
            [row], base_offset=offset, leader_epoch=0, producer_id=producer, producer_epoch=0,
            control=True, transactional=True,
        )
    )  # fmt: skip


@pytest.mark.parametrize("kind", [ABORT, COMMIT])
@pytest.mark.parametrize(("open_at", "stable"), [(None, 2), (2, 2)])
def test_a_transaction_that_ended_before_the_start_holds_nobody_up(
    kind: int, open_at: int | None, stable: int
) -> None:
    env = sim_env()
    env.fs.make_dir(LOG_PATH)
    batches = data(0, 7) + marker(1, 7, kind)
    if open_at is not None:
        batches += data(open_at, 8)
    file = env.fs.open(f"{LOG_PATH}/{segment_name(0, LOG)}", create=True)
    file.write_at(0, batches)
    file.sync()
    log = open_log(env, UNCLEAN)
    assert log.snapshot.last_stable_offset == stable
    assert log.snapshot.high_watermark == (2 if open_at is None else 3)
    assert reopened(log, env).snapshot.last_stable_offset == stable
