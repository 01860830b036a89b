"""Any push becomes series that Prometheus reads, within all bounds, or an error with a code."""

import contextlib
import math
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData
from prometheus_client.parser import text_string_to_metric_families

from broker.metrics.telemetry import TelemetryView, client_lines
from broker.telemetry.message_count import BadMessage, TooManyMessages, check_message_count
from broker.telemetry.payload import MOST_POINTS, read_push
from broker.telemetry.points import MOST_CHARACTERS_OF_A_VALUE, MOST_LABELS, ClientName
from broker.telemetry.series import ClientSeries
from protocol.errors import ErrorCode, KafkaError
from protocol.records.compression import Codec, deflate
from tests.support.records.pushes import CUMULATIVE, DELTA, gauge, histogram, point, push_of, total

MIB = 1 << 20
REFUSALS = (ErrorCode.INVALID_RECORD, ErrorCode.TELEMETRY_TOO_LARGE)
MOST_SERIES = 12
CLIENT = ClientName('c"\n\\', "i")
names = st.one_of(
    st.text(max_size=250), st.sampled_from(["org.apache.kafka.a.b", "a_b", "a.b.total"])
)
words = st.one_of(st.text(max_size=150), st.integers(-9, 9), st.booleans(), st.floats(), st.none())
labels = st.dictionaries(st.text(max_size=70), words, max_size=18)
few_labels = st.dictionaries(st.sampled_from(["a", "b.c", "client_id", "le"]), words, max_size=3)
points = st.builds(
    point,
    st.one_of(st.none(), st.floats()),
    st.one_of(few_labels, labels),
    flags=st.integers(0, 1),
)
kinds: list[Callable[..., Metric]] = [
    gauge,
    total,
    lambda name, *of: total(name, *of, temporality=CUMULATIVE),
    lambda name, *of: total(name, *of, temporality=DELTA, grows=False),
    lambda name, *_: histogram(name),
]


@st.composite
def metrics(draw: Any) -> Metric:
    return draw(st.sampled_from(kinds))(draw(names), *draw(st.lists(points, max_size=4)))


@settings(max_examples=300, deadline=None)
@given(
    pushes=st.lists(
        st.tuples(st.integers(1, 3), st.lists(metrics(), max_size=6), few_labels), max_size=4
    ),
    codec=st.sampled_from(Codec),
)
def test_what_clients_push_is_read_by_prometheus(pushes: list[Any], codec: Codec) -> None:
    series = ClientSeries(MOST_SERIES)
    for client, sent, resource in pushes:
        data = deflate(codec, push_of(*sent, resource=resource))
        read = read_push(codec, data, MIB, ClientName(CLIENT.client_id, str(client)))
        assert len(read.points) <= read.looked_at <= MOST_POINTS
        assert all(count >= 0 for count in read.dropped.values())
        series.take(UUID(int=client), read.points, ends_ms=1)
    telemetry: Any = SimpleNamespace(series=series)
    text = "".join(client_lines(TelemetryView(telemetry)))
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found[family.name] += 1
            assert sample.name.startswith("kafka_client_")
            assert sample.labels["client_id"] == CLIENT.client_id
            assert len(sample.labels) <= MOST_LABELS
            assert all(len(each) <= MOST_CHARACTERS_OF_A_VALUE for each in sample.labels.values())
            if family.type == "counter":
                assert sample.value >= 0
                assert not math.isnan(sample.value)
    assert found.total() == series.count <= MOST_SERIES
    series.expire(1)
    assert series.count == 0
    assert not list(series.families())


@settings(max_examples=300, deadline=None)
@given(st.lists(metrics(), max_size=5), few_labels)
def test_messages_are_counted_as_the_library_makes_them(sent: list[Metric], resource: Any) -> None:
    data = push_of(*sent, resource=resource)
    made = _messages(MetricsData.FromString(data))
    check_message_count(data, MetricsData.DESCRIPTOR, made)
    with pytest.raises(TooManyMessages):
        check_message_count(data, MetricsData.DESCRIPTOR, made - 1)


def _messages(message: Any) -> int:
    """Messages in a message."""
    found = 0
    for field, value in message.ListFields():
        if field.message_type is not None:
            inner = [value] if hasattr(value, "ListFields") else value
            found += sum(1 + _messages(each) for each in inner)
    return found


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=400))
def test_bytes_that_the_library_reads_are_counted(data: bytes) -> None:
    try:
        read = MetricsData.FromString(data)
    except DecodeError:
        return
    with contextlib.suppress(BadMessage):  # a group, which the library leaves alone
        check_message_count(data, MetricsData.DESCRIPTOR, len(data))
        with contextlib.suppress(TooManyMessages):
            check_message_count(data, MetricsData.DESCRIPTOR, _messages(read) - 1)
            assert not _messages(read)


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=400), st.sampled_from(Codec))
def test_any_bytes_are_read_or_refused(data: bytes, codec: Codec) -> None:
    for sent in (data, deflate(codec, data)):
        try:
            read_push(codec, sent, MIB, CLIENT)
        except KafkaError as error:
            assert error.code in REFUSALS  # noqa: PT017


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_push_is_read_or_refused(data: Any) -> None:
    sound = bytearray(push_of(*data.draw(st.lists(metrics(), min_size=1, max_size=4))))
    for _ in range(data.draw(st.integers(1, 5))):
        sound[data.draw(st.integers(0, len(sound) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_push(Codec.NONE, bytes(sound), MIB, CLIENT)
    except KafkaError as error:
        assert error.code in REFUSALS  # noqa: PT017
