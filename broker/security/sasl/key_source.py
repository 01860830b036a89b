"""The keys of a provider, kept current: read at the start, now and then, and when one is missed.

What cannot be read changes nothing: the last good keys stay, and the next try waits a while. A
token with a key that is not known asks for a reading, once a minute at most, and waits for it.

Knows no library of tokens: a broker without OAUTHBEARER runs without one.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.security.sasl.exchange import Proof
from broker.security.sasl.oauthbearer import BadKeys, BadToken, UnknownKey
from config.security.oauth import OauthConfig

if TYPE_CHECKING:
    from broker.security.sasl.jwks import SigningKeys
    from broker.security.sasl.signed_tokens import TokenRules

ASKED_SECONDS = 60.0
MOST_WAITING = 1000


class KeySource:
    """The keys of one listener's tokens, and their judge. Used from the event loop."""

    def __init__(
        self,
        config: OauthConfig,
        rules: "TokenRules",
        read: "Callable[[], Awaitable[SigningKeys]]",
        monotonic: Callable[[], float],
    ) -> None:
        """`read()` gives the keys as they are now, or raises BadKeys. It is bounded in time."""
        self.keys: SigningKeys | None = None
        """The last good ones."""
        self.readings = 0
        self.failures = 0
        """Readings that failed."""
        self.failure = ""
        """The reason of the last one, until one succeeds."""
        self.read_at: float | None = None
        """Monotonic time of the last good reading."""
        self._failed_in_a_row = 0
        self._config = config
        self._rules = rules
        self._read = read
        self._monotonic = monotonic
        self._due = monotonic()
        self._asked: float | None = None
        self._is_reading = False
        self._waiting: list[Callable[[], None]] = []

    def judge(self, token: str) -> Proof | Deferred[Proof]:
        """The holder of a token. Raises BadToken."""
        try:
            return self._rules.holder(token, self.keys)
        except UnknownKey:
            if not self._asks():
                raise
        return self._judged_later(token)

    async def refresh(self, *, is_asked: bool = False) -> None:
        """Reads the keys if that is due, or asked for. Called about once a second."""
        if self._is_reading or not (is_asked or self._monotonic() >= self._due):
            return
        self._is_reading = True
        try:
            self._took(await self._read())
        except BadKeys as error:
            self._failed(error)
        finally:
            self._is_reading = False
            waiting, self._waiting = self._waiting, []
            for go_on in waiting:
                go_on()

    def _asks(self) -> bool:
        """True when a reading comes soon that may know the key."""
        now = self._monotonic()
        if len(self._waiting) >= MOST_WAITING:
            return False
        if self._is_reading or (self._waiting and self._due <= now):
            return True
        if self._asked is not None and now - self._asked < ASKED_SECONDS:
            return False
        self._asked = self._due = now
        return True

    def _judged_later(self, token: str) -> Deferred[Proof]:
        answer: Deferred[Proof] = Deferred()

        def go_on() -> None:
            try:
                answer.resolve(self._rules.holder(token, self.keys))
            except BadToken as error:
                answer.fail(error)

        self._waiting.append(go_on)
        return answer

    def _took(self, keys: "SigningKeys") -> None:
        config, before = self._config, self.keys
        self.keys, self.read_at, self._failed_in_a_row = keys, self._monotonic(), 0
        self.readings += 1
        self.failure = ""
        self._due = self.read_at + config.jwks_endpoint_refresh_ms / 1000
        if before is None or before.keys != keys.keys:
            event("signing_keys_read", source=config.jwks_endpoint_url, keys=len(keys.keys.keys))

    def _failed(self, error: BadKeys) -> None:
        config, before = self._config, self._failed_in_a_row
        self.failures += 1
        self.failure = str(error)
        self._failed_in_a_row += 1
        wait_ms = min(
            config.jwks_endpoint_retry_backoff_max_ms,
            config.jwks_endpoint_retry_backoff_ms << min(before, 30),
        )
        self._due = self._monotonic() + wait_ms / 1000
        if before & self._failed_in_a_row == 0:  # the first one, the second, the fourth, ...
            event(
                "signing_keys_not_read",
                "error",
                source=config.jwks_endpoint_url,
                tries=self._failed_in_a_row,
                detail=error,
            )
