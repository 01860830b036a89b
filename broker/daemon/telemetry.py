"""Client telemetry (KIP-714) as the daemon makes it, for `horolog.client.telemetry.enable`."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Protocol

from broker.runtime.lanes import DiskLanes
from broker.server.client_software import ClientSoftware
from broker.telemetry.client_telemetry import ClientTelemetry, TelemetryLimits, TelemetryServices
from config.errors import ConfigError
from config.resources.kinds import ResourceKind
from config.store import ConfigStore
from storage.env import Env

HANDLERS = frozenset(("get_telemetry_subscriptions", "push_telemetry"))
"""Of the APIs that are not listed without the setting, as by a Kafka without a plug-in."""
SETTING = "horolog.client.telemetry.enable"
LIBRARIES = ("google.protobuf", "opentelemetry.proto")


class Connections(Protocol):
    """Connections of clients, as far as others want to hear of them."""

    software: ClientSoftware
    on_lost: list[Callable[[int], None]]


class ServingFleet(Protocol):
    """A fleet, as far as it says which APIs are served."""

    def serves(self, api: str) -> bool:
        """True for an API that its nodes serve, by its handler's module."""


def serves(config: ConfigStore, fleet: ServingFleet | None) -> Callable[[str], bool]:
    """The choice of APIs that this broker serves, by their handlers' modules."""
    is_on = config.broker_config.horolog_client_telemetry_enable

    def is_served(api: str) -> bool:
        return (is_on or api not in HANDLERS) and (fleet is None or fleet.serves(api))

    return is_served


def made_telemetry(
    env: Env, config: ConfigStore, lanes: DiskLanes, server: Connections
) -> ClientTelemetry:
    """No client is known. One thread reads all pushes, so that one is in memory at a time.

    It hears of the connections of `server` that end.
    """
    settings = config.broker_config
    telemetry = ClientTelemetry(
        TelemetryServices(
            env.clock,
            env.rng,
            lanes.wide_lane("client-telemetry", 1),
            lambda: config.settings_of(ResourceKind.CLIENT_METRICS),
            server.software,
        ),
        TelemetryLimits(settings.telemetry_max_bytes, settings.horolog_client_telemetry_max_series),
    )
    server.on_lost.append(telemetry.connection_lost)
    return telemetry


def check_telemetry_library(config: ConfigStore) -> None:
    """ConfigError when pushes shall be read and the library for that is not there."""
    is_on = config.broker_config.horolog_client_telemetry_enable
    if is_on and not all(map(_is_there, LIBRARIES)):
        raise ConfigError(
            SETTING,
            f"{SETTING} needs the library opentelemetry-proto: pip install 'horolog[telemetry]'",
        )


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False
