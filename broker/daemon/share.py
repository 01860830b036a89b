"""Share groups of a broker, alone or in a fleet: where the states of their partitions are."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from broker.daemon.telemetry import Connections
from broker.groups.share.persister import SharePersister
from broker.groups.share.progress import FleetProgress, LocalProgress, ProgressService
from broker.groups.share.states_persister import StatesPersister
from broker.share.share_reads import ShareReads, ShareServices
from broker.share.state.coordinator import ShareCoordinator
from broker.share.state.pruning import ShareStatePruning
from broker.share.state.store import ShareStates
from broker.share.undelivered import StartsOf, nowhere_else
from broker.state.services import StateServices

if TYPE_CHECKING:
    from broker.daemon.fleet import Fleet
    from broker.share.state.over_nodes.starts import StartsElsewhere


class ShareStanding(NamedTuple):
    """States of share partitions, for those that use them."""

    coordinator: ShareCoordinator
    """Of this broker."""
    states: ShareStates
    """For leaders of partitions."""
    persister: SharePersister
    """For coordinators of groups."""
    progress: ProgressService
    """For those who look."""
    starts: "StartsElsewhere | None" = None
    """For retention; None without other nodes."""

    @property
    def pruning(self) -> ShareStatePruning:
        """Keeps what is stored here short."""
        return ShareStatePruning(self.coordinator)

    @property
    def starts_of(self) -> StartsOf:
        """Starts that other nodes remember."""
        return nowhere_else if self.starts is None else self.starts.of


def made_share_standing(
    state: StateServices,
    fleet: "Fleet | None",
    loop: asyncio.AbstractEventLoop,
    monotonic: Callable[[], float],
) -> ShareStanding:
    """Of a broker alone its own coordinator has them; in a fleet that of whichever node."""
    coordinator = ShareCoordinator(state, loop)
    if fleet is not None:
        fleet.remembers(coordinator)
    if fleet is None or fleet.peers is None or fleet.log_ends is None:
        persister = StatesPersister(coordinator)
        return ShareStanding(coordinator, coordinator, persister, LocalProgress(persister))
    from broker.share.state.over_nodes.routed import RoutedShareStates
    from broker.share.state.over_nodes.starts import StartsElsewhere

    states = RoutedShareStates(coordinator, state.topics, fleet.peers.ask, monotonic)
    persister, ends = StatesPersister(states), fleet.log_ends.of
    starts = StartsElsewhere(coordinator, state.topics, state.config, states.summary)
    return ShareStanding(coordinator, states, persister, FleetProgress(persister, ends), starts)


def made_share_reads(
    services: ShareServices, server: Connections, fleet: "Fleet | None"
) -> ShareReads:
    """Nobody reads. It hears of connections that end, and of partitions that others lead."""
    if fleet is not None and fleet.peers is not None:
        from broker.fleet.peers.appends import PeerAppends

        append = PeerAppends(fleet.peers.ask).append
        services = services._replace(append_elsewhere=append)
    reads = ShareReads(services)
    server.on_lost.append(reads.connection_lost)
    if fleet is not None:
        fleet.on_lost(reads.led_no_more)
    return reads
