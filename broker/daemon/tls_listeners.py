"""Certificates of listeners with TLS: read at the start, at SIGHUP, once a minute, and when a
client sets where they are.

A new certificate is checked whole before it counts, by one assignment and for new connections; open
ones stay. When anything is wrong with it, the one before stays.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from broker.daemon.services import Services
from broker.runtime.event_log import event
from broker.runtime.request_context import Peer
from broker.security.audit.lines import AdminChange, Who
from broker.security.certificates import Credentials, check_renewal, load_credentials
from broker.security.dn import dn_of
from broker.server.tls_listener import TlsListener
from config.errors import ConfigError
from config.listener_keys import renewed_listener
from config.quantities import iso
from config.security.tls import TlsConfig
from config.store import SettingsChange
from storage.errors import StorageError

CHECK_SECONDS = 60.0


def add_tls_listeners(services: Services) -> None:
    """Before ports are bound. ConfigError when a certificate cannot be shown to clients; blocks.

    What a client has renewed counts: settings that are stored are looked at before the directory is
    locked, and again, for good, after it.
    """
    with suppress(ConfigError, StorageError):
        services.topics.restore_settings()
    services.resources.renewal = Certificates(services)
    for name, config in services.config.broker_config.listener_tls.items():
        try:
            credentials = load_credentials(config, services.fs, services.env.clock.now_ms())
        except ConfigError as error:
            raise error.at(f"listener {name}") from error
        listener = services.server.tls[name] = TlsListener(name, credentials)
        listener.on_refused = partial(_refused, services)


def _refused(services: Services, peer: Peer, reason: str) -> None:
    who = Who("", peer.client_host, peer.listener_name)
    services.trail.authentication_failed(who, "TLS", reason)


async def renew_certificates(services: Services) -> None:
    """Reads all files again; what has changed in them counts, or is reported once."""
    renewal = services.resources.renewal
    assert isinstance(renewal, Certificates)
    await renewal.look_again()


class Certificates:
    """Renewal of the certificates in use. Used from the event loop."""

    def __init__(self, services: Services) -> None:
        """Of `services.server.tls`."""
        self._services = services
        self._renewing = asyncio.Lock()

    async def look_again(self) -> None:
        """Reads all files again; what has changed in them counts, or is reported once."""
        for name, listener in self._services.server.tls.items():
            try:
                async with self._renewing:
                    config = self._services.config.broker_config.listener_tls[name]
                    found = await self._checked(listener, config)
                    if config == self._services.config.broker_config.listener_tls[name]:
                        self._publish(listener, found)
            except ConfigError as error:
                if str(error) != listener.failure:
                    event("certificate_not_renewed", "error", listener=name, detail=error)
                listener.failure = str(error)

    async def prepare(
        self, change: SettingsChange, names: Collection[str]
    ) -> Callable[[], None] | None:
        """As `Renewal` in `broker.topics.config_resources` says."""
        services = self._services
        before = services.config.broker_config.listener_tls
        after = services.config.broker_config_after(change).listener_tls
        asked = {renewed_listener(each) for each in names}
        found: list[tuple[TlsListener, Credentials]] = []
        for name, listener in services.server.tls.items():
            if name in asked or after[name] != before[name]:
                try:
                    async with self._renewing:
                        found.append((listener, await self._checked(listener, after[name])))
                except ConfigError as error:
                    raise error.at(f"listener {name}") from error

        def publish() -> None:
            for listener, credentials in found:
                self._publish(listener, credentials)

        return publish if found else None

    async def _checked(self, listener: TlsListener, config: TlsConfig) -> Credentials:
        services, before = self._services, listener.credentials
        now_ms = services.env.clock.now_ms()
        found = await services.lane.run(load_credentials, config, services.fs, now_ms)
        if found.source != before.source:
            check_renewal(config, before.certificate, found.certificate)
        return found

    def _publish(self, listener: TlsListener, found: Credentials) -> None:
        listener.failure = ""
        if found.source == listener.credentials.source:
            return
        listener.credentials = found
        ends = iso(found.certificate.not_after_ms)
        event("certificate_renewed", listener=listener.name, not_after=ends)
        detail = f"not_after={ends} subject={dn_of(found.certificate.subject)}"
        renewed = AdminChange("renew certificate", f"listener {listener.name}", detail)
        self._services.trail.noted(Who("", "", "file", ""), renewed)
