"""What the metrics say of requests to a store, beside what the store itself has seen."""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from uuid import UUID

import pytest
from moto.server import ThreadedMotoServer

from broker.access.store.objects import open_store
from broker.tier.counted_store import CountedStore
from broker.tier.store_account import Purpose, StoreAccount
from storage.tier.names import PartitionKeys
from tests.support.tier.s3_server import S3Server, only_aws

MIB = 1024 * 1024
KINDS = {"PUT": "put", "GET": "get", "POST": "put"}
KEYS = PartitionKeys("t", UUID(int=1), 0)


@pytest.fixture
def server() -> Iterator[S3Server]:
    moto = ThreadedMotoServer("127.0.0.1", 0)
    moto.start()
    host, port = moto.get_host_and_port()
    try:
        yield S3Server(f"{host}:{port}", "bill", ("testing", "secret"))
    finally:
        moto.stop()


COLOUR = re.compile("\x1b\\[[0-9;]*m")  # a terminal's, which the log has at times


def kind_of(line: str) -> str:
    """The kind of a request, by the server's own log of it."""
    method, path, *_ = COLOUR.sub("", line).split()
    if "?delete" in path:
        return "delete"
    return "list" if "list-type=2" in path else KINDS[method]


def test_the_store_has_seen_as_many_requests_as_are_counted(
    server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    import boto3

    with only_aws(server.environment):
        boto3.client("s3").create_bucket(Bucket="bill")
        store = open_store(server.url("pre"))
    account = StoreAccount(lambda: 0.0)
    copies, sweeps = (CountedStore(store, account, each) for each in (Purpose.COPY, Purpose.SWEEP))
    caplog.set_level(logging.INFO, "werkzeug")
    caplog.clear()
    large, small = (KEYS.segment(0, f"{n:016x}", ".log") for n in (1, 2))
    copies.put_file(large, iter([bytes(MIB)] * 20), 20 * MIB)
    copies.put_file(small, iter([b"12"]), 2)
    copies.get_range(large, 5, 10)
    assert sum(map(len, copies.pieces(large, 5, 9 * MIB))) == 9 * MIB
    many = [KEYS.manifest(number) for number in range(1, 1002)]
    for key in many[:3]:
        copies.put_new(key, b"1")
    copies.get(many[0])
    assert len(list(sweeps.list(""))) == 5
    sweeps.delete(many)
    seen = Counter(kind_of(each.args[0]) for each in caplog.records if each.args)
    told: Counter[str] = Counter()
    for (_, request), count in account.requests.items():
        told[str(request)] += count
    assert told == seen
    assert told == {"put": 5 + 1 + 3, "get": 3, "list": 1, "delete": 2}
    assert account.size_bytes[Purpose.COPY, "put"] == 20 * MIB + 2  # type: ignore[index]
