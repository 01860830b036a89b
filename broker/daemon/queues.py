"""Queues where other services meet them: the redrive of dead letters, and what retention leaves."""

from typing import NamedTuple

from broker.groups.redrive.redrive import Redrive
from broker.groups.redrive.redrive_call import RedriveParts
from broker.partitions.partition_services import KeptForQueues
from broker.server.services import bound
from broker.share.share_reads import ShareReads
from broker.share.state.coordinator import ShareCoordinator
from broker.share.undelivered import StartsOf, UndeliveredRecords
from config.store import ConfigStore


class QueueServices(NamedTuple):
    """The services that know of queues."""

    share_states: ShareCoordinator
    share_reads: ShareReads
    share_starts: StartsOf
    config: ConfigStore


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
