"""Reading of pushes: what becomes a point, what is dropped, what is refused."""

import math
from typing import Any

import pytest

from broker.telemetry.payload import (
    MOST_MESSAGES,
    MOST_METRICS,
    MOST_POINTS,
    SMALL_BYTES,
    ReadPush,
    read_push,
)
from broker.telemetry.points import ClientName
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Codec, deflate
from protocol.wire import uvarint
from tests.support.records.pushes import (
    CUMULATIVE,
    DELTA,
    gauge,
    histogram,
    point,
    push_of,
    total,
)

MIB = 1 << 20
OF_CLIENT = (("client_id", "c"), ("client_instance_id", "i"))
CLIENT = ClientName("c", "i")


def read(data: bytes, codec: Codec = Codec.NONE, most_bytes: int = MIB) -> ReadPush:
    return read_push(codec, data, most_bytes, CLIENT)


def refused(data: bytes, codec: Codec = Codec.NONE, most_bytes: int = MIB) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        read(data, codec, most_bytes)
    return error.value.code


@pytest.mark.parametrize("codec", Codec)
def test_a_push_is_read_in_every_codec(codec: Codec) -> None:
    data = push_of(
        gauge("org.apache.kafka.producer.node.request.latency.avg", point(2.5, {"node_id": 1})),
        total("org.apache.kafka.producer.connection.creation.total", point(3), temporality=DELTA),
        total("app.orders", point(4), temporality=CUMULATIVE),
        total("app.queue", point(-4), temporality=DELTA, grows=False),
        resource={"group.id": "g"},
    )
    found = [
        (each.name, each.kind, dict(each.labels), each.value, each.is_delta)
        for each in read(deflate(codec, data), codec).points
    ]
    of_all = {**dict(OF_CLIENT), "group_id": "g"}
    latency = "kafka_client_producer_node_request_latency_avg"
    assert found == [
        (latency, "gauge", {**of_all, "node_id": "1"}, 2.5, False),
        ("kafka_client_producer_connection_creation_total", "counter", of_all, 3.0, True),
        ("kafka_client_app_orders_total", "counter", of_all, 4.0, False),
        ("kafka_client_app_queue", "gauge", of_all, -4.0, True),
    ]


def test_the_labels_of_the_client_are_not_its_own_to_choose() -> None:
    (found,) = read(
        push_of(gauge("m", point(1, {"client.id": "other", "client_instance_id": "x"})))
    ).points
    assert found.labels == OF_CLIENT


@pytest.mark.parametrize(
    ("labels", "shown"),
    [
        ({"Größe-in bytes": "x"}, {"Gr_e_in_bytes": "x"}),
        ({"__name__": "x"}, {"name": "x"}),
        ({"9lives": True}, {"label_9lives": "true"}),
        ({"n": 5, "d": 0.5}, {"n": "5", "d": "0.5"}),
        ({"long": "v" * 500}, {"long": "v" * 128}),
        ({'quo"te': 'a"\n\\'}, {"quo_te": 'a"\n\\'}),
    ],
)
def test_attributes_become_labels(labels: dict[str, Any], shown: dict[str, str]) -> None:
    (found,) = read(push_of(gauge("m", point(1, labels)))).points
    assert dict(found.labels) == {**shown, **dict(OF_CLIENT)}


@pytest.mark.parametrize(
    ("metric", "reason", "count"),
    [
        (histogram("h"), "kind", 1),
        (gauge("", point(1)), "name", 1),
        (gauge("...", point(1)), "name", 1),
        (gauge("n" * 201, point(1), point(2)), "name", 2),
        (gauge("m", point(None)), "value", 1),
        (total("m", point(-1)), "value", 1),
        (total("m", point(math.inf)), "value", 1),
        (gauge("m", point(1, {"none": None})), "labels", 1),
        (gauge("m", point(1, {"": "x"})), "labels", 1),
        (gauge("m", point(1, {"k" * 65: "x"})), "labels", 1),
        (gauge("m", point(1, {f"k{i}": "x" for i in range(15)})), "labels", 1),
        (gauge("m", point(1, {f"k{i}": "x" for i in range(100)})), "labels", 1),
    ],
)
def test_what_cannot_be_shown_is_dropped_and_counted(metric: Any, reason: str, count: int) -> None:
    found = read(push_of(metric, gauge("good", point(1))))
    assert found.dropped == {reason: count}
    assert [each.name for each in found.points] == ["kafka_client_good"]


def test_a_gauge_may_be_no_number_and_a_point_may_say_that_it_has_no_value() -> None:
    found = read(push_of(gauge("m", point(math.nan), point(1, flags=1))))
    assert [math.isnan(each.value) for each in found.points] == [True]
    assert not found.dropped


def test_points_beyond_the_limit_are_dropped_even_when_the_first_are_bad() -> None:
    bad = [point(None) for _ in range(MOST_POINTS - 1)]
    found = read(push_of(gauge("a", *bad), gauge("b", *[point(1)] * 5), gauge("c", point(1))))
    assert len(found.points) == 1
    assert found.dropped == {"value": MOST_POINTS - 1, "push_limit": 5}


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        (Codec.NONE, b"\xff" * 40),
        (Codec.NONE, push_of(gauge("m", point(1)))[:-1]),
        *((codec, b"no frame of this codec") for codec in Codec if codec is not Codec.NONE),
        *((codec, deflate(codec, b"\xff" * 40)) for codec in Codec),
    ],
)
def test_garbage_is_an_invalid_record(codec: Codec, data: bytes) -> None:
    assert refused(data, codec) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", Codec)
def test_a_bomb_is_too_large(codec: Codec) -> None:
    bomb = deflate(codec, b"\0" * (64 * MIB))
    assert refused(bomb, codec) == ErrorCode.TELEMETRY_TOO_LARGE


@pytest.mark.parametrize("part", [b"\x0a\x00", b"\x0a\x02\x12\x00"])
def test_many_empty_parts_are_too_large(part: bytes) -> None:
    """A resource, and a resource with a scope."""
    assert refused(part * (MOST_METRICS + 1)) == ErrorCode.TELEMETRY_TOO_LARGE
    assert read(part * (MOST_METRICS // 2)).points == []


@pytest.mark.parametrize(
    "numbers",
    [(1,), (1, 2), (1, 2, 2), (1, 2, 2, 5, 1), (1, 2, 2, 5, 1, 7), (1, 2, 2, 10, 1), (1, 1, 1, 2)],
)
def test_many_empty_messages_are_too_large_wherever_they_stand(numbers: tuple[int, ...]) -> None:
    """By the numbers of the fields that lead there."""
    *outer, last = numbers
    nested = bytes([last << 3 | 2, 0]) * (MOST_MESSAGES + 1)
    for number in reversed(outer):
        nested = bytes([number << 3 | 2]) + uvarint(len(nested)) + nested
    assert refused(nested) == ErrorCode.TELEMETRY_TOO_LARGE


def test_a_large_push_is_read_as_a_small_one() -> None:
    points = [point(n, {"topic": "t" * 100, "partition": n}) for n in range(MOST_POINTS)]
    data = push_of(gauge("m", *points), resource={"group.id": "g"})
    assert len(data) > SMALL_BYTES
    found = read(data)
    assert [each.value for each in found.points] == list(range(MOST_POINTS))
    assert not found.dropped
    for end in range(len(data) - 300, len(data)):
        assert refused(data[:end]) == ErrorCode.INVALID_RECORD


def test_many_metrics_without_points_are_too_large() -> None:
    assert refused(push_of(*[gauge("m")] * (MOST_METRICS + 1))) == ErrorCode.TELEMETRY_TOO_LARGE
