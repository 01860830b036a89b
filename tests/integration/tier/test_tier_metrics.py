"""What a scrape tells of a broker whose closed segments go to a real object store."""

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.tier.test_tiered_broker import (
    RECORDS,
    make_topic,
    read_all,
    settings,
    until,
    wait_until_away,
    write,
)
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker

KAFKA = "kafka_server_brokertopicmetrics_remote"
Series = dict[tuple[str, ...], float]


@pytest.fixture
def server() -> Iterator[S3Server]:
    """One of its own: the test ends it."""
    with seaweedfs() as running:
        yield running


class Scraped:
    """The samples of both paths, by name. A scrape is that of all who ask within a second."""

    def __init__(self, http: str) -> None:
        self._found: dict[str, Series] = {}
        for path in ("metrics", "metrics/kafka"):
            with urllib.request.urlopen(f"http://{http}/{path}", timeout=10) as answer:
                for family in text_string_to_metric_families(answer.read().decode()):
                    for each in family.samples:
                        labels = tuple(each.labels.values())
                        self._found.setdefault(each.name, {})[labels] = each.value

    def of(self, name: str, *labels: str) -> float:
        """One sample; 0 without it."""
        return self._found[name].get(labels, 0.0)

    def total(self, name: str, **chosen: str) -> float:
        """All that have one of these values among their labels."""
        found = self._found.get(name, {})
        return sum(n for labels, n in found.items() if set(chosen.values()) <= set(labels))


def test_a_scrape_tells_of_copies_reads_and_a_store_that_is_away(
    server: S3Server, tmp_path: Path
) -> None:
    more = {**settings(server, tmp_path.name), "horolog.tier.max.lag.ms": "3600000"}
    with only_aws(server.environment):
        started = start_broker(tmp_path / "data", more)
    with started as broker:
        http = broker.facts["http"]
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        wait_until_away(broker.bootstrap, "t")
        until(lambda: not Scraped(http).of("horolog_tier_lag_bytes", "t"), "some wait for ever")
        _copies(Scraped(http))
        assert read_all(broker.bootstrap, "t", RECORDS) == list(range(RECORDS))
        until(lambda: _told(Scraped(http)), "no read is told")
        _reads(Scraped(http))
        assert server.process is not None
        server.process.kill()
        server.process.wait()
        write(broker.bootstrap, "t", RECORDS, 3000)
        _away(http)


def _copies(found: Scraped) -> None:
    copied = found.of("horolog_tier_copied_segments_total")
    assert copied >= 4
    assert found.of("horolog_tier_lag_seconds", "t") == 0
    assert found.of("horolog_tier_max_lag_seconds") == 3600
    assert found.of("horolog_tier_remote_bytes", "t") > 1024 * 1024
    requests = "horolog_tier_requests_total"
    assert found.of(requests, "copy", "put") == 2 * copied
    assert found.of(requests, "copy", "get") >= 2 * copied
    assert found.of(requests, "manifest", "put") >= copied
    assert found.of(requests, "cluster", "put") >= 3
    assert found.of(requests, "read", "get") == 0
    segments = found.of("horolog_tier_copied_bytes_total")
    assert found.of("horolog_tier_transferred_bytes_total", "copy", "put") >= segments
    assert found.total("horolog_tier_request_errors_total") == 0
    assert found.of("horolog_tier_store_failing_seconds") == 0
    for topic in ("t", ""):
        assert found.of(f"{KAFKA}copyrequests_total", topic) == copied
        assert found.of(f"{KAFKA}copybytes_total", topic) >= segments
        assert found.of(f"{KAFKA}logmetadatacount", topic) == copied
        assert found.of(f"{KAFKA}logsizebytes", topic) == segments
        assert found.of(f"{KAFKA}copylagsegments", topic) == 0


def _told(found: Scraped) -> bool:
    """On either path: each has a scrape of its own, and one may be older."""
    misses = found.of("horolog_tier_cache_misses_total")
    return bool(misses and found.of(f"{KAFKA}fetchbytes_total", "t"))


def _reads(found: Scraped) -> None:
    size = found.of("horolog_tier_remote_bytes", "t")
    assert found.of("horolog_tier_transferred_bytes_total", "read", "get") >= size
    assert found.of(f"{KAFKA}fetchbytes_total", "t") >= size
    assert found.of(f"{KAFKA}fetchrequests_total", "t") >= 2
    assert found.of(f"{KAFKA}fetcherrors_total", "t") == 0
    assert found.of("horolog_tier_cache_bytes") >= size
    assert found.of("horolog_tier_damaged_reads_total") == 0


def _away(http: str) -> None:
    def fails() -> bool:
        found: Any = Scraped(http)
        return bool(
            found.of("horolog_tier_store_failing_seconds") > 0
            and found.total("horolog_tier_request_errors_total", error="away") >= 2
            and found.of("horolog_tier_lag_segments", "t") > 0
            and found.of("horolog_tier_failing_partitions") >= 1  # those of groups, too
        )

    until(fails, "the store is not missed")
    assert Scraped(http).of(f"{KAFKA}copylagbytes", "t") > 1024 * 1024
