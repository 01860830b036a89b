"""Brings a broker to its working temperature: a virtual machine compiles what it runs often."""

from itertools import repeat

from tests.bench.fetch_cells import MIB, RECORD_BYTES, RECORDS_A_BATCH, read_all
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer
from tests.bench.pump import for_seconds, pump
from tests.bench.topics import topic
from tests.bench.wire import Wire

SIZES = ((100, 5000), (RECORD_BYTES, RECORDS_A_BATCH), (10_000, 50))


def warm_up(peer: Peer, megabytes: int, seconds: float) -> None:
    """Appends that much in batches of all sizes, reads a part back, then sends single records."""
    for record_bytes, count in SIZES:
        with (
            topic(peer.bootstrap, "warm", config=peer.cached_config) as name,
            Wire(peer.bootstrap) as wire,
        ):
            request = produce(name, batch_of(record_bytes, count), acks=1)
            requests = max(2, megabytes * 1_000_000 // len(SIZES) // len(request))
            pump(wire, name, repeat(request, requests), 5)
            if record_bytes == RECORD_BYTES:
                for max_bytes in (MIB, 8 * MIB):
                    sum(read_all(wire, name, max_bytes, requests * RECORDS_A_BATCH))
    for config, acks in ((peer.cached_config, 1), (peer.fsync_config, -1)):
        with topic(peer.bootstrap, "warm", config=config) as name, Wire(peer.bootstrap) as wire:
            for depth in (1, 5):
                request = produce(name, batch_of(100, 1), acks=acks)
                pump(wire, name, for_seconds(seconds, request), depth)
