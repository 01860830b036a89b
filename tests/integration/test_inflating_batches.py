"""Small batches that unpack to very much, sent to a real broker: others hardly notice."""

from pathlib import Path

import pytest

from protocol.records.compression import Codec
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.inflating import (
    NOW_MS,
    big_value,
    bystander,
    look_up,
    make_topic,
    many_headers,
    produce,
)

PARTITIONS = 40
LONGEST_SECONDS = 1.0
"""Seconds. Without the bounds others waited for 7 to 33; a quiet machine shows 0.01 to 0.05."""


@pytest.mark.parametrize(
    "batch",
    [
        big_value(Codec.ZSTD),
        big_value(Codec.GZIP),
        big_value(Codec.LZ4),
        big_value(Codec.SNAPPY, 20 * 1024 * 1024),
        many_headers(Codec.ZSTD, 30_000_000),
    ],
    ids=["zstd", "gzip", "lz4", "snappy", "many headers"],
)
def test_others_are_answered_while_they_are_unpacked(tmp_path: Path, batch: bytes) -> None:
    with start_broker(tmp_path / "data") as broker:
        host, _, port = broker.bootstrap.rpartition(":")

        def connect() -> WireClient:
            return WireClient(host, int(port))

        attacker = connect()
        make_topic(attacker, "other", 1)
        make_topic(attacker, "t", PARTITIONS)
        with bystander(connect, "other") as waits:
            attacker.call(produce("t", dict.fromkeys(range(PARTITIONS), batch)), 8)
            attacker.call(look_up("t", PARTITIONS, NOW_MS), 5)
        attacker.socket.close()
        print(waits)
        assert waits.longest < LONGEST_SECONDS, str(waits)
