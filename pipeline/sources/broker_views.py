"""Partitions as a broker tells of them: who leads, from where to where they may be read.

Offsets come from ListOffsets and so are the broker's own word: high watermark, or last stable
offset for committed records. When the broker's directory is on this machine, partitions are read
there and cost the broker nothing.
"""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from broker.access.settings import ClientSecurity
from pipeline.broker_client import BrokerClient, ask_one, split_address
from pipeline.errors import NoConnection, NothingThere, NotNow
from pipeline.leaders import Leaders
from pipeline.sources.log_views import is_of_fleet, topic_id_of
from pipeline.sources.options import AUTO, EARLIEST, FILES, LATEST, WIRE, ReadOptions
from pipeline.sources.partition_view import PartitionView
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.apis.describe_log_dirs import DescribeLogDirsRequest
from protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.errors import ErrorCode
from storage.files.layout import partition_dir_name

_Key = tuple[str, int]
_T = TypeVar("_T")
SEARCH_CLOCK = "horolog.search.clock"
PATIENCE_SECONDS = 30.0
RETRY_SECONDS = 0.5
_TOPIC = 2


def broker_views(options: ReadOptions) -> list[PartitionView]:
    """The partitions that are asked for, as brokers have them now. BrokerRefused, NothingThere.

    While one of them has no leader, or a new one, it waits, `PATIENCE_SECONDS` at the most.
    """
    return _patiently(lambda: _asked(options))


def _patiently(ask: Callable[[], _T]) -> _T:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return ask()
        except NotNow:
            if time.monotonic() >= until:
                raise
        time.sleep(RETRY_SECONDS)


def _asked(options: ReadOptions) -> list[PartitionView]:
    views = ask_one(
        options.bootstrap,
        lambda client: list(_led(client, options)),
        options.security,
    )
    return [view for leader in _by_leader(views).values() for view in _looked_at(leader, options)]


def offsets_at(
    client: BrokerClient, keys: Iterable[_Key], time_ms: int, *, is_committed: bool = False
) -> dict[_Key, int]:
    """ListOffsets for many partitions at once; -1 where there is no such offset."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition in keys:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=time_ms)
        topics.setdefault(topic, []).append(wanted)
    request = ListOffsetsRequest(
        isolation_level=int(is_committed),
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
    )
    found = {}
    for topic in client.call(request).topics:
        for each in topic.partitions:
            client.check(
                each.error_code, f"offsets of {topic.name}-{each.partition_index}",
                f"DESCRIBE on the topic {topic.name}",
            )  # fmt: skip
            found[topic.name, each.partition_index] = each.offset
    return found


def first_offset_by_time(view: PartitionView, time_ms: int, options: ReadOptions) -> int:
    """An offset before which no record of the partition is as late; its start if that is unknown.

    Whoever leads it now is asked.

    A search is only asked for where it goes by record time (`horolog.search.clock`). That nothing
    was found is not believed: Kafka says so, too, when it has looked into one segment alone.
    """
    leaders = _leaders_of(view, options)
    return _patiently(lambda: _searched(next(leaders), view, time_ms, options.security))


def _leaders_of(view: PartitionView, options: ReadOptions) -> Iterator[str]:
    """The leader as of the plan, then whoever leads at each further look."""
    yield view.leader
    leaders = Leaders(options.bootstrap, options.security)
    while True:
        leaders.forget()
        yield leaders.of_partition(view.topic, view.partition) or view.leader


def _searched(leader: str, view: PartitionView, time_ms: int, security: ClientSecurity) -> int:
    key = view.topic, view.partition
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=_TOPIC,
                resource_name=view.topic,
                configuration_keys=[SEARCH_CLOCK],
            )
        ]
    )
    with _leader(leader, security) as client:
        described = client.call(request).results[0]
        clocks = {each.value for each in described.configs if each.name == SEARCH_CLOCK}
        if described.error_code or clocks - {"record"}:
            return view.start_offset
        return max(view.start_offset, offsets_at(client, [key], time_ms)[key])


def _led(client: BrokerClient, options: ReadOptions) -> Iterable[PartitionView]:
    """The partitions that are asked for and their leaders; nothing else is known of them yet."""
    names = options.assigned or options.topics
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names] if names else None,
        allow_auto_topic_creation=False,
    )
    answer = client.call(request)
    brokers = {each.node_id: f"{each.host}:{each.port}" for each in answer.brokers}
    for topic in answer.topics:
        if not names and (topic.is_internal or not options.takes(topic.name)):
            continue
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NothingThere(f"the topic {topic.name!r} is not on {client.address}")
        client.check(
            topic.error_code, f"the topic {topic.name}", f"DESCRIBE on the topic {topic.name}"
        )
        for each in topic.partitions:
            if not options.takes(topic.name, each.partition_index):
                continue
            leader = brokers.get(each.leader_id)
            if leader is None:
                raise NotNow(f"{topic.name}-{each.partition_index} has no leader now")
            topic_id = topic.topic_id.hex if topic.topic_id.int else ""
            yield PartitionView(topic.name, each.partition_index, topic_id, 0, 0, None, leader)


@contextmanager
def _leader(address: str, security: ClientSecurity) -> Iterator[BrokerClient]:
    """A connection to a leader; NotNow when it fails, since others may lead soon."""
    try:
        with BrokerClient(address, security) as client:
            yield client
    except NoConnection as error:
        raise NotNow(str(error)) from None


def _by_leader(views: Iterable[PartitionView]) -> Mapping[str, list[PartitionView]]:
    leaders: dict[str, list[PartitionView]] = {}
    for view in views:
        leaders.setdefault(view.leader, []).append(view)
    return leaders


def _looked_at(views: list[PartitionView], options: ReadOptions) -> Iterable[PartitionView]:
    """The partitions of one leader with their bounds, their sizes and their directories."""
    with _leader(views[0].leader, options.security) as client:
        keys = [(view.topic, view.partition) for view in views]
        starts = offsets_at(client, keys, EARLIEST)
        ends = offsets_at(client, keys, LATEST, is_committed=options.is_committed)
        sizes, where = _directories(client)
    directory_of = _finder(options, views[0].leader, where)
    for view in views:
        key = view.topic, view.partition
        start = starts[key]
        yield view._replace(
            start_offset=start,
            end_offset=max(start, ends[key]),
            directory=directory_of(view),
            size_bytes=sizes.get(key, 0),
            tier=options.tier,
        )


def _directories(client: BrokerClient) -> tuple[dict[_Key, int], dict[_Key, str]]:
    """Sizes and data directories of a broker's partitions, where it tells them."""
    sizes: dict[_Key, int] = {}
    where: dict[_Key, str] = {}
    if client.has(DescribeLogDirsRequest):
        for result in client.call(DescribeLogDirsRequest(topics=None)).results:
            for topic in result.topics:
                for each in topic.partitions:
                    sizes[topic.name, each.partition_index] = each.partition_size
                    where[topic.name, each.partition_index] = result.log_dir
    return sizes, where


def _finder(
    options: ReadOptions, leader: str, where: Mapping[_Key, str]
) -> Callable[[PartitionView], str | None]:
    """Finds the directory of a partition that can be read on this machine, or None."""
    looks = options.mode != WIRE and bool(options.log_dirs or is_here(leader))

    def directory_of(view: PartitionView) -> str | None:
        log_dir = where.get((view.topic, view.partition))
        name = partition_dir_name(view.topic, view.partition)
        for above in (options.log_dirs or filter(None, (log_dir,))) if looks else ():
            path = f"{above.rstrip('/')}/{name}"
            if (
                Path(path).is_dir()
                and topic_id_of(path) == view.topic_id
                and not is_of_fleet(above)
            ):
                return path
        if options.mode == FILES:
            raise NothingThere(
                f"{view} is not in a directory of this machine; mode={AUTO} would fetch it"
            )
        return None

    return directory_of


def is_here(address: str) -> bool:
    """True when a broker's address is one of this machine's."""
    host, _ = split_address(address)
    try:
        family, _, _, _, target = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind(target)
    except OSError:
        return False
    return True
