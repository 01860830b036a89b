"""Kinds of value: what text they take, what they refuse, what they report."""

import pytest

from config.endpoints import Address, HostPort, Listener, Listeners
from config.quantities import LONG_MAX
from config.security.protocols import ProtocolMap
from config.security.tls import StoreType
from config.values import (
    INT_MAX,
    Choice,
    Flag,
    GzipLevel,
    KafkaType,
    Number,
    Words,
    count,
    millis,
    size,
)

UNLIMITED_HOURS = Number(-(2**31), 2**31 - 1, "ms", bare=3_600_000, unlimited=True)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (millis(), "250", 250),
        (millis(), "250ms", 250),
        (millis(), "90s", 90_000),
        (millis(), "15 m", 900_000),
        (millis(), "12h", 43_200_000),
        (millis(), " 7d ", 604_800_000),
        (millis(), str(LONG_MAX), LONG_MAX),
        (millis(-1), "-1", -1),
        (size(), "64KiB", 65_536),
        (size(), "1gib", 2**30),
        (size(), "1MB", 1_000_000),
        (size(), "17b", 17),
        (UNLIMITED_HOURS, "168", 604_800_000),
        (UNLIMITED_HOURS, "7d", 604_800_000),
        (UNLIMITED_HOURS, "-5", -1),
    ],
)
def test_a_number_is_read_in_its_smallest_unit(kind: Number, text: str, value: int) -> None:
    assert kind.parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reported"),
    [
        (millis(), "1h", "3600000"),
        (size(), "1MiB", "1048576"),
        (UNLIMITED_HOURS, "2d", "48"),
        (UNLIMITED_HOURS, "-7", "-1"),
        (Flag(), "TRUE", "true"),
        (Words(("delete", "compact")), " compact, delete ,compact", "compact,delete"),
        (Words(("delete", "compact")), "", ""),
        (Listeners(), "plaintext://:9092/, in://[::1]:1", "PLAINTEXT://:9092,IN://[::1]:1"),
        (HostPort(), " localhost:1 ", "localhost:1"),
    ],
)
def test_a_value_is_reported_without_its_unit(kind: Number, text: str, reported: str) -> None:
    assert kind.canonical(text) == reported


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (count(), "1s"),
        (count(), ""),
        (count(), "1.5"),
        (count(), "ten"),
        (count(), "1_000"),
        (count(), "-1"),
        (count(), str(INT_MAX + 1)),
        (millis(), "1KiB"),
        (millis(), "1w"),
        (millis(), str(LONG_MAX + 1)),
        (millis(), f"{LONG_MAX // 1000 + 1}s"),
        (size(), "1h"),
        (size(), "2GiB"),
        (UNLIMITED_HOURS, "0"),
        (UNLIMITED_HOURS, "90m"),
        (GzipLevel(), "0"),
        (GzipLevel(), "10"),
        (Flag(), "yes"),
        (Flag(), "1"),
        (Choice(("gzip", "zstd")), "GZIP"),
        (Words(("delete",)), "delete,keep"),
        (Listeners(), ""),
        (Listeners(), "localhost:9092"),
        (ProtocolMap(), "A:B"),
        (ProtocolMap(), "A:SSL,a:PLAINTEXT"),
        (StoreType(), "JKS"),
        (StoreType(), "x"),
        (Listeners(), "A://h:1,a://h:2"),
        (Listeners(), "A://h:65536"),
        (Listeners(), "A://::1:9092"),
        (HostPort(), "localhost"),
        (HostPort(), "localhost:http"),
        (HostPort(), ":65536"),
    ],
)
def test_text_that_does_not_fit_is_refused(kind: Number, text: str) -> None:
    with pytest.raises(ValueError):
        kind.parse(text)


def test_listeners_are_names_hosts_and_ports() -> None:
    assert Listeners().parse("PLAINTEXT://:9092, LOCAL://[fe80::1]:0") == (
        Listener("PLAINTEXT", "", 9092),
        Listener("LOCAL", "fe80::1", 0),
    )


def test_no_advertised_listener_and_no_http_address_can_be_asked_for() -> None:
    assert Listeners(optional=True).parse("") == ()
    assert HostPort().parse("") is None
    assert HostPort().parse("[::1]:9404") == Address("::1", 9404)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_a_host_that_means_every_address_cannot_be_dialled(host: str) -> None:
    assert Listener("A", host, 1).is_wildcard
    assert not Listener("A", "127.0.0.1", 1).is_wildcard


def test_a_number_is_an_int_of_kafka_until_it_needs_a_long() -> None:
    assert count().kafka_type is KafkaType.INT
    assert millis().kafka_type is KafkaType.LONG
