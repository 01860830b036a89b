"""SIGHUP: the settings are read again, and what may change at run time changes, or nothing does.

Flags and environment are those of the start; the file is read again, and so are the token of the
HTTP API, the certificates of listeners and the keys of OAUTHBEARER, from where the start read them.
The log says which keys count now and which need a restart; when anything in the file is wrong, that
none does, and why.
"""

import asyncio
from collections.abc import Callable

from broker.daemon.oauth_listeners import refresh_keys
from broker.daemon.services import Services
from broker.runtime.event_log import event
from broker.security.audit.lines import AdminChange, Who
from config.errors import ConfigError
from config.sources import Loaded
from config.store import ConfigStore
from protocol.errors import ErrorCode

RELOAD = "reload settings"
WHO = Who("", "", "SIGHUP", "")


class Reload:
    """Reloads one after the other. Used from the event loop."""

    def __init__(self, services: Services, read: Callable[[], Loaded]) -> None:
        """`read` reads all sources as the start did; it may raise ConfigError, and it blocks."""
        self._services = services
        self._read = read
        self._running: asyncio.Task[None] | None = None
        self._again = False

    def begin(self) -> None:
        """Begins a reload. One that is requested meanwhile comes after it."""
        if self._running is not None and not self._running.done():
            self._again = True
        else:
            self._running = self._services.loop.create_task(self._run())

    async def stop(self) -> None:
        """Waits for one under way."""
        self._again = False
        if self._running is not None:
            await asyncio.wait([self._running])

    async def _run(self) -> None:
        self._again = True
        while self._again:
            self._again = False
            await self._reload()

    async def _reload(self) -> None:
        services, readiness = self._services, self._services.readiness
        if not readiness.is_ready:
            event("settings_not_reloaded", "warning", detail=f"it is {readiness.reason}")
            return
        try:
            loaded = await services.loop.run_in_executor(None, self._read)
            tokens = await services.loop.run_in_executor(None, services.http_tokens.read)
            async with services.topics.changing:
                before = _values(services.config)
                outcome = services.config.reload(loaded.layers)
        except ConfigError as error:
            self._note(AdminChange(RELOAD, "broker", "", ErrorCode.INVALID_CONFIG, str(error)))
            for line in str(error).splitlines():
                event("settings_not_reloaded", "error", detail=line)
            return
        if services.server.http_address is not None and tokens != services.http_tokens.value:
            services.http_tokens.value = tokens
            event("http_token_renewed")
            self._note(AdminChange("renew token", "HTTP", ""))
        if services.server.tls:
            from broker.daemon.tls_listeners import renew_certificates

            await renew_certificates(services)
        await refresh_keys(services, is_asked=True)
        for ignored in loaded.ignored:
            event("setting_ignored", "warning", detail=ignored)
        event(
            "settings_reloaded",
            "warning" if outcome.at_restart else "info",
            changed=",".join(outcome.changed),
            need_restart=",".join(outcome.at_restart),
        )
        now = _values(services.config)
        changes = (f"{key}={now.get(key)} (was {before.get(key)})" for key in outcome.changed)
        self._note(AdminChange(RELOAD, "broker", " ".join(changes)))

    def _note(self, change: AdminChange) -> None:
        self._services.trail.noted(WHO, change)


def _values(config: ConfigStore) -> dict[str, str]:
    """The broker's settings as anybody may see them, by name."""
    return {
        each.name: "[hidden]" if each.value is None else each.value
        for each in config.describe_broker()
    }
