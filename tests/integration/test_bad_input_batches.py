"""Batches and requests that a broker must refuse with Kafka's error code, sent to a process.

Nothing refused may be stored, and the next good batch gets the next offset.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from crc32c import crc32c

from protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from protocol.errors import ErrorCode as Code
from protocol.records.batch import HEADER_BYTES
from protocol.records.compression import Codec, deflate
from protocol.records.numbers import zigzag_bytes
from tests.support.clients.wire import WireClient
from tests.support.worlds.watched_broker import (
    MIB,
    WatchedBroker,
    fetch_from,
    produce_to,
    small_batch,
)

ERRORS = "horolog_request_errors_total"
LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, COUNT = 8, 16, 17, 21, 23, 57


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("bad") / "data") as broker:
        broker.make_topic("t")
        broker.make_topic("compacted", cleanup_policy="compact")
        broker.make_topic("small", max_message_bytes="1000")
        broker.make_topic("bombs", 16, max_message_bytes=str(2 * MIB))
        yield broker
        broker.check_counters()


@pytest.fixture
def broker(shared: WatchedBroker) -> Iterator[WatchedBroker]:
    yield shared
    shared.check_unharmed()


@pytest.fixture
def client(broker: WatchedBroker) -> Iterator[WireClient]:
    with broker.client() as client:
        yield client


def sealed(batch: bytearray) -> bytearray:
    batch[CRC : CRC + 4] = crc32c(batch[ATTRIBUTES:]).to_bytes(4, "big")
    return batch


def with_int32(position: int, value: int) -> bytearray:
    batch = small_batch(b"a", b"b", b"c")
    struct.pack_into(">i", batch, position, value)
    return sealed(batch)


def with_byte(position: int, value: int, *, seal: bool = True) -> bytearray:
    batch = small_batch(b"a", b"b", b"c")
    batch[position] = value
    return sealed(batch) if seal else batch


def with_payload(payload: bytes, count: int = 1, codec: int = 0) -> bytearray:
    batch = small_batch(*[b"x"] * count)[:HEADER_BYTES] + payload
    struct.pack_into(">i", batch, LENGTH, len(batch) - 12)
    batch[ATTRIBUTES + 1] = codec
    return sealed(batch)


def record(value_length: int, body: bytes = b"v", headers: bytes = b"\0") -> bytes:
    inner = b"\0\0\0\x01" + zigzag_bytes(value_length) + body + headers
    return zigzag_bytes(len(inner)) + inner


TOO_LARGE = 2**31 - 1
REFUSED: dict[str, tuple[Callable[[], bytes | bytearray | None], Code]] = {
    "null records": (lambda: None, Code.INVALID_RECORD),
    "no bytes": (lambda: b"", Code.INVALID_RECORD),
    "one byte": (lambda: b"\0", Code.INVALID_RECORD),
    "garbage": (lambda: bytes(range(200)), Code.INVALID_RECORD),
    "zeros": (lambda: bytes(200), Code.INVALID_RECORD),
    "cut in the header": (lambda: small_batch()[:40], Code.INVALID_RECORD),
    "cut in the records": (lambda: small_batch(b"v" * 100)[:-10], Code.INVALID_RECORD),
    "bytes too many": (lambda: small_batch() + b"xyz", Code.INVALID_RECORD),
    "two batches": (lambda: small_batch() + small_batch(), Code.INVALID_RECORD),
    "wrong CRC": (lambda: with_byte(CRC, 0x55, seal=False), Code.CORRUPT_MESSAGE),
    "flipped value": (lambda: with_byte(-2, 0x7A, seal=False), Code.CORRUPT_MESSAGE),
    "magic 0": (lambda: with_byte(MAGIC, 0), Code.INVALID_RECORD),
    "magic 1": (lambda: with_byte(MAGIC, 1), Code.INVALID_RECORD),
    "magic 3": (lambda: with_byte(MAGIC, 3), Code.INVALID_RECORD),
    "magic -1": (lambda: with_byte(MAGIC, 0xFF), Code.INVALID_RECORD),
    "negative length": (lambda: with_int32(LENGTH, -5), Code.CORRUPT_MESSAGE),
    "length 0": (lambda: with_int32(LENGTH, 0), Code.CORRUPT_MESSAGE),
    "length 2 GiB": (lambda: with_int32(LENGTH, TOO_LARGE), Code.INVALID_RECORD),
    "count 0": (lambda: with_int32(COUNT, 0), Code.INVALID_RECORD),
    "count -1": (lambda: with_int32(COUNT, -1), Code.INVALID_RECORD),
    "count 2 of 3": (lambda: with_int32(COUNT, 2), Code.INVALID_RECORD),
    "count 4 of 3": (lambda: with_int32(COUNT, 4), Code.INVALID_RECORD),
    "count 2^31-1": (lambda: with_int32(COUNT, TOO_LARGE), Code.INVALID_RECORD),
    "last delta -1": (lambda: with_int32(LAST_DELTA, -1), Code.INVALID_RECORD),
    "last delta 2^31-1": (lambda: with_int32(LAST_DELTA, TOO_LARGE), Code.INVALID_RECORD),
    "control batch": (lambda: with_byte(ATTRIBUTES + 1, 0x20), Code.INVALID_RECORD),
    "transactional without a transaction": (
        lambda: with_byte(ATTRIBUTES + 1, 0x10),
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    "codec 5": (lambda: with_byte(ATTRIBUTES + 1, 5), Code.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7": (lambda: with_byte(ATTRIBUTES + 1, 7), Code.UNSUPPORTED_COMPRESSION_TYPE),
    "value longer than batch": (lambda: with_payload(record(1000)), Code.INVALID_RECORD),
    "value of 2 GiB": (lambda: with_payload(record(TOO_LARGE)), Code.INVALID_RECORD),
    "value of length -2": (lambda: with_payload(record(-2, b"")), Code.INVALID_RECORD),
    "headers that are not there": (
        lambda: with_payload(record(1, b"v", zigzag_bytes(TOO_LARGE))),
        Code.INVALID_RECORD,
    ),
    "negative headers": (
        lambda: with_payload(record(1, b"v", zigzag_bytes(-1))),
        Code.INVALID_RECORD,
    ),
    "endless varint": (lambda: with_payload(b"\xff" * 40), Code.INVALID_RECORD),
    "record of size 0": (lambda: with_payload(b"\0"), Code.INVALID_RECORD),
    "negative record size": (lambda: with_payload(zigzag_bytes(-7)), Code.INVALID_RECORD),
    "sequence without number": (
        lambda: small_batch(producer_id=5, producer_epoch=0, base_sequence=-1),
        Code.INVALID_RECORD,
    ),
    **{
        f"{codec.name.lower()} garbage": (
            lambda codec=codec: with_payload(b"garbage" * 9, codec=codec),
            Code.INVALID_RECORD,
        )
        for codec in list(Codec)[1:]
    },
    **{
        f"{codec.name.lower()} cut": (
            lambda codec=codec: with_payload(deflate(codec, b"r" * 500)[:-6], codec=codec),
            Code.INVALID_RECORD,
        )
        for codec in list(Codec)[1:]
    },
    "gzip of an endless record": (
        lambda: with_payload(deflate(Codec.GZIP, b"\xff" * 100), codec=1),
        Code.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize("version", [7, 12])
@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_batch_gets_its_code_and_leaves_no_trace(
    broker: WatchedBroker, client: WireClient, name: str, version: int
) -> None:
    make, code = REFUSED[name]
    end = produce_to(client, small_batch()).base_offset + 1
    answer = produce_to(client, make(), version=version)
    assert Code(answer.error_code) is code, answer
    assert answer.base_offset == -1
    assert produce_to(client, small_batch()).base_offset == end


def test_every_refusal_was_counted(broker: WatchedBroker, client: WireClient) -> None:
    before = broker.metric(ERRORS, api="Produce", error="CORRUPT_MESSAGE")
    produce_to(client, with_byte(CRC, 1, seal=False))
    assert broker.metric(ERRORS, api="Produce", error="CORRUPT_MESSAGE") == before + 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"acks": 7}, Code.INVALID_REQUIRED_ACKS),
        ({"acks": -2}, Code.INVALID_REQUIRED_ACKS),
        ({"topic": "unknown"}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "../../etc/passwd"}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": ""}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 1}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": -1}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 2**31 - 1}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"transactional_id": "tx"}, Code.NONE),
        (
            {"transactional_id": "tx", "records": small_batch(transactional=True, producer_id=1)},
            Code.INVALID_PRODUCER_ID_MAPPING,
        ),
        ({"topic": "compacted"}, Code.INVALID_RECORD),
        ({"topic": "small", "records": small_batch(b"x" * 2000)}, Code.MESSAGE_TOO_LARGE),
        ({"records": small_batch(b"x" * (2 * MIB))}, Code.MESSAGE_TOO_LARGE),
        ({"records": small_batch(codec=Codec.ZSTD), "version": 6}, Code(76)),
        ({"timeout_ms": -(2**31)}, Code.NONE),
    ],
)
def test_what_the_request_itself_has_wrong(
    broker: WatchedBroker, client: WireClient, fields: dict[str, object], code: Code
) -> None:
    fields = dict(fields)
    answer = produce_to(client, fields.pop("records", small_batch()), **fields)
    assert Code(answer.error_code) is code, answer


def test_acks_0_that_goes_wrong_closes_and_counts(broker: WatchedBroker) -> None:
    with broker.client() as client:
        data = PartitionProduceData(index=0, records=with_byte(CRC, 3, seal=False))
        topics = [TopicProduceData(name="t", partition_data=[data])]
        client.send(ProduceRequest(acks=0, timeout_ms=1, topic_data=topics), 9)
        assert client.receive_all() == b""
    assert broker.metric("horolog_connections_closed_total", reason="acks_zero_error")


def test_good_and_bad_partitions_of_one_request_are_told_apart(
    broker: WatchedBroker, client: WireClient
) -> None:
    good = [PartitionProduceData(index=0, records=small_batch()) for _ in range(2)]
    bad = PartitionProduceData(index=9, records=small_batch())
    topics = [TopicProduceData(name="t", partition_data=[good[0], bad, good[1]])]
    answer = client.call(ProduceRequest(acks=-1, timeout_ms=9, topic_data=topics), 9)
    codes = [each.error_code for each in answer.responses[0].partition_responses]
    assert codes == [0, Code.UNKNOWN_TOPIC_OR_PARTITION, 0]


# -- bombs


def zeros(codec: Codec, size: int) -> bytes:
    if codec is Codec.GZIP:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(
            [*(packer.compress(bytes(MIB)) for _ in range(size // MIB)), packer.flush()]
        )
    if codec is Codec.ZSTD:
        import zstandard

        return zstandard.ZstdCompressor(level=3).compress(bytes(size))
    if codec is Codec.LZ4:
        import lz4.frame

        packed: bytes = lz4.frame.compress(bytes(size), block_size=lz4.frame.BLOCKSIZE_MAX4MB)
        return packed
    return deflate(codec, bytes(size))


BOMBS = {Codec.GZIP: 512, Codec.SNAPPY: 30, Codec.LZ4: 400, Codec.ZSTD: 1024}  # MiB


@pytest.mark.parametrize("codec", BOMBS)
def test_sixteen_bombs_at_once_take_bounded_memory(broker: WatchedBroker, codec: Codec) -> None:
    batch = bytes(with_payload(zeros(codec, BOMBS[codec] * MIB), codec=codec))
    assert len(batch) < 2 * MIB
    before = broker.status("VmRSS")
    broker.forget_peak()

    def throw(partition: int) -> int:
        with broker.client() as client:
            answer = produce_to(client, batch, topic="bombs", partition=partition)
            return int(answer.error_code)

    with ThreadPoolExecutor(16) as pool:
        codes = set(pool.map(throw, range(16)))
    assert codes <= {Code.MESSAGE_TOO_LARGE, Code.INVALID_RECORD}
    if codec is not Codec.SNAPPY:
        assert codes == {Code.MESSAGE_TOO_LARGE}
    assert broker.status("VmHWM") - before < 200 * MIB


def test_oversized_compressed_batches_are_not_kept_while_they_wait(broker: WatchedBroker) -> None:
    batch = bytes(with_payload(bytes(40 * MIB), codec=1))
    data = PartitionProduceData(index=0, records=batch)
    topics = [TopicProduceData(name="bombs", partition_data=[data])]
    request = ProduceRequest(acks=1, timeout_ms=9, topic_data=topics)
    with broker.client() as client:
        client.call(request, 9)
        broker.forget_peak()
        before = broker.status("VmRSS")
        sent = [client.send(request, 9) for _ in range(8)]
        for each in sent:
            (answer,) = client.receive(*each).responses[0].partition_responses
            assert answer.error_code == Code.MESSAGE_TOO_LARGE
    assert broker.status("VmHWM") - before < 150 * MIB


# -- fetch


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"max_bytes": -1, "partition_max_bytes": -1}, 0),
        ({"max_bytes": 2**31 - 1, "partition_max_bytes": 2**31 - 1}, 0),
        ({"max_bytes": -(2**31), "min_bytes": -(2**31), "max_wait_ms": -(2**31)}, 0),
        ({"min_bytes": 2**31 - 1, "max_wait_ms": 50}, 0),
        ({"isolation_level": -128}, 0),
        ({"offset": -1}, Code.OFFSET_OUT_OF_RANGE),
        ({"offset": 2**63 - 1}, Code.OFFSET_OUT_OF_RANGE),
        ({"offset": -(2**63)}, Code.OFFSET_OUT_OF_RANGE),
        ({"partition": -1}, Code.UNKNOWN_TOPIC_OR_PARTITION),
        ({"topic": "nowhere"}, Code.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
@pytest.mark.parametrize("version", [4, 12])
def test_absurd_fetches_are_answered(
    broker: WatchedBroker,
    client: WireClient,
    fields: dict[str, object],
    code: int,
    version: int,
) -> None:
    produce_to(client, small_batch())
    answer = fetch_from(client, version=version, **fields)
    assert answer.responses[0].partitions[0].error_code == code


def test_a_client_that_claims_to_be_a_replica_is_refused(client: WireClient) -> None:
    answer = fetch_from(client, replica_id=1, version=11)
    assert answer.responses[0].partitions[0].error_code == Code.TOPIC_AUTHORIZATION_FAILED


def test_fetch_sessions_run_out_without_harm(broker: WatchedBroker, client: WireClient) -> None:
    given = [fetch_from(client, session_epoch=0).session_id for _ in range(1100)]
    assert broker.metric("horolog_fetch_sessions") <= 1000
    assert given[0] > 0
    assert given[-1] == 0, "a client without a session sends full requests"
    with broker.client() as other:
        assert fetch_from(other).responses[0].partitions[0].error_code == 0
    answer = fetch_from(client, session_id=12345, session_epoch=7)
    assert answer.error_code == Code.FETCH_SESSION_ID_NOT_FOUND
