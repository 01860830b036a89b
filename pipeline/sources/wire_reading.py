"""Reads a range of offsets by Fetch from the partition's leader; the same decoder as for files.

The leader may move meanwhile: the next one goes on at the offset that is due. Batches come as
stored on the broker's disk. For committed records the broker names the
transactions that were aborted; each ends with its marker. A topic that was deleted and made again
is noticed before the first byte is taken.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pipeline.broker_client import BrokerClient, check
from pipeline.decode.arrays import Numbers
from pipeline.decode.batch_columns import ATTRIBUTES, BASE_OFFSET, LAST_OFFSET, PRODUCER
from pipeline.decode.columns import BatchOrigin
from pipeline.decode.decoder import decode_rows
from pipeline.errors import DataLost, NoConnection, NotNow
from pipeline.sources.batch_tables import Parts, parts_of
from pipeline.sources.chunks import WireChunk
from pipeline.sources.wire_leader import WireLeader
from protocol.api import Api
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.errors import ErrorCode
from protocol.records.batch import CONTROL, MAX_INT64
from storage.index.txn_index import AbortedTxn

FETCH_BYTES = 8 * 1024 * 1024
MOST_VERSION = 12  # the last one with topics by name
WAIT_MS = 500

_Sent = tuple[Api, int, int]


def read_wire_chunk(chunk: WireChunk, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The selected records with the columns of `schema`. DataLost, DamagedLog, BrokerRefused."""
    origin = BatchOrigin(chunk.view.topic, chunk.view.partition)
    with WireLeader(chunk) as leader:
        for answer, parts, first in _answers(leader, chunk, origin):
            for part in parts.batches:
                rows = part.table.rows
                aborted = _aborted(answer, rows) if chunk.is_committed else ()
                selection = chunk.selection._replace(first_offset=first, aborted=aborted)
                yield from decode_rows(part.data, rows, origin, schema, selection)
            if parts.fault is not None:
                raise parts.fault


def _answers(
    leader: WireLeader, chunk: WireChunk, origin: BatchOrigin
) -> Iterator[tuple[Any, Parts, int]]:
    """The answers for the chunk's offsets, with their batches and the offset that was asked for,
    before which records of the first batch may be.
    """
    offset, last = chunk.selection.first_offset, chunk.selection.last_offset
    under_way: _Sent | None = None
    while offset <= last:
        try:
            client = leader.client
            answer = _received(client, chunk, under_way or _sent(client, chunk, offset))
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                offset = _after_loss(client, chunk, offset)
        except (NoConnection, NotNow) as error:
            leader.moved(error)
            under_way = None
            continue
        parts, first = parts_of(memoryview(answer.records or b""), origin), offset
        if parts.batches:
            offset = int(parts.batches[-1].table.rows[-1, LAST_OFFSET]) + 1
            leader.went_on()
        else:
            leader.waited(f"has nothing from offset {offset} on, though up to {last} was readable")
        is_done = offset > last or parts.fault is not None
        under_way = None if is_done else _sent_ahead(client, chunk, offset)
        yield answer, parts, first  # the next one is made meanwhile


def _sent(client: BrokerClient, chunk: WireChunk, offset: int) -> _Sent:
    return client.send(_request(chunk, offset), at_most=MOST_VERSION)


def _sent_ahead(client: BrokerClient, chunk: WireChunk, offset: int) -> _Sent | None:
    """None where the connection fails: the next turn meets that, when this answer is taken."""
    try:
        return _sent(client, chunk, offset)
    except NoConnection:
        return None


def _received(client: BrokerClient, chunk: WireChunk, under_way: _Sent) -> Any:
    """The partition in the next answer; BrokerRefused for an error, but for a missing offset."""
    whole = client.receive(*under_way)
    check(whole.error_code, f"{client.address}, Fetch")
    answer = whole.responses[0].partitions[0]
    if answer.error_code != ErrorCode.OFFSET_OUT_OF_RANGE:
        client.check(answer.error_code, str(chunk.view), f"READ on the topic {chunk.view.topic}")
    return answer


def _request(chunk: WireChunk, offset: int) -> FetchRequest:
    wanted = FetchPartition(
        partition=chunk.view.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES
    )
    return FetchRequest(
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=int(chunk.is_committed),
        topics=[FetchTopic(topic=chunk.view.topic, partitions=[wanted])],
    )


def _after_loss(client: BrokerClient, chunk: WireChunk, offset: int) -> int:
    """The first offset that is left; DataLost unless the user lets it pass."""
    from pipeline.sources.broker_views import offsets_at
    from pipeline.sources.options import EARLIEST

    key = chunk.view.topic, chunk.view.partition
    start = offsets_at(client, [key], EARLIEST)[key]
    if chunk.fails_on_loss or start <= offset:
        raise DataLost(
            f"{chunk.view}: offset {offset} is not there; the log begins at {start} now "
            "(failOnDataLoss=false reads what is left)"
        )
    return start


def _aborted(answer: Any, rows: Numbers) -> tuple[AbortedTxn, ...]:
    """The aborted transactions of an answer, each up to its marker, or to the answer's end."""
    found = []
    markers = rows[rows[:, ATTRIBUTES] & CONTROL != 0]
    for each in answer.aborted_transactions or ():
        ends = markers[
            (markers[:, PRODUCER] == each.producer_id)
            & (markers[:, BASE_OFFSET] >= each.first_offset),
            BASE_OFFSET,
        ]
        last = int(ends[0]) if len(ends) else MAX_INT64
        found.append(AbortedTxn(each.producer_id, each.first_offset, last, last))
    return tuple(found)
