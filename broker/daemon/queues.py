"""Queues where other services meet them: the redrive of dead letters, and what retention leaves."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from broker.groups.redrive.elsewhere import OtherNodes
from broker.groups.redrive.redrive import Redrive
from broker.groups.redrive.redrive_call import RedriveParts
from broker.partitions.partition_services import KeptForQueues
from broker.runtime.lanes import DiskLanes
from broker.server.services import bound
from broker.share.share_reads import ShareReads
from broker.share.state.coordinator import ShareCoordinator
from broker.share.undelivered import StartsOf, UndeliveredRecords
from config.store import ConfigStore

if TYPE_CHECKING:
    from broker.daemon.fleet import Fleet

LETTERS = "fleet-letters"
LETTER_THREADS = 2
"""Of redrives, which wait for other nodes."""


class QueueServices(NamedTuple):
    """The services that know of queues."""

    share_states: ShareCoordinator
    share_reads: ShareReads
    share_starts: StartsOf
    config: ConfigStore


def made_other_nodes(
    fleet: "Fleet | None", lanes: DiskLanes, loop: asyncio.AbstractEventLoop
) -> OtherNodes | None:
    """Partitions of the other nodes of a fleet; None where there are none to be asked."""
    if fleet is None or fleet.peers is None:
        return None
    from broker.fleet.peers.other_nodes import PeerPartitions
    from broker.fleet.peers.records import PeerRecords

    records = PeerRecords(fleet.peers.ask, loop)
    return PeerPartitions(fleet.peers, records, lanes.wide_lane(LETTERS, LETTER_THREADS))


def made_redrive(services: object, kept: KeptForQueues) -> Redrive:
    """The redrive; has retention leave what share groups keep, too.

    AttributeError for a service that is not there yet.
    """
    found: QueueServices = bound(QueueServices, services)
    undelivered = UndeliveredRecords(
        found.share_states, found.share_reads.partitions, found.config, found.share_starts
    )
    kept.source = undelivered.of
    return Redrive(bound(RedriveParts, services))
