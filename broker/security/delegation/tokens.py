"""Delegation tokens of a broker: made by users, durable, looked up at each log-in (KIP-48).

A change is checked, decided (in a fleet, by its rows), written, and then counts. Limits of time are
those of the settings. Who may change a token, and the order of those checks, is as in Kafka
(DelegationTokenControlManager). Tokens of another secret are kept until they end, and let nobody
in.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.documents import (
    DecidesDocumentsHere,
    DocumentAuthority,
    NotDecided,
    keep,
    on_the_newest,
)
from broker.security.credentials import Credential, Mechanism
from broker.security.delegation.table import TokenTable
from broker.security.delegation.token import DelegationToken, TokenKey, TokenSecret, id_of
from broker.security.delegation.tokens_file import FILE_NAME, parse
from broker.security.sasl.exchange import Proof
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane
    from config.store import ConfigStore
    from storage.env import Env

DOCUMENT = "tokens"
"""Name of the document that they are in a fleet."""
MAX_TOKENS = 10_000
MAX_OF_AN_OWNER = 100


class Wish(NamedTuple):
    """A token to be made; a lifetime counts when it is positive, up to the broker's longest."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    lifetime_ms: int


class Tokens:
    """The tokens in force. Used from the event loop only, but for `load`."""

    def __init__(
        self, env: "Env", lane: "DiskLane", config: "ConfigStore", patient: "DiskLane"
    ) -> None:
        """There are none until `load`. Passwords are derived on `patient`, files are on `lane`."""
        settings = config.broker_config
        secret = TokenSecret(settings.delegation_token_secret_key)
        self.is_on: bool = secret.is_set
        """True when tokens are made and let clients in."""
        self._longest_ms = settings.delegation_token_max_lifetime_ms
        self._period_ms = settings.delegation_token_expiry_time_ms
        self._env = env
        self._lane = lane
        self._patient = patient
        self._changing = asyncio.Lock()
        self.authority: DocumentAuthority = DecidesDocumentsHere()
        self._table = TokenTable(secret)
        self.on_removed: Callable[[TokenKey], None] = _ignored
        """Called for each token that is no longer there."""
        self.on_ending: Callable[[TokenKey, int], None] = _ignored_end
        """Called for each token that ends earlier than was said, with that time in ms."""

    def load(self) -> None:
        """Before clients may come: what was given when it ran last. Blocks.

        Raises CorruptCheckpoint or NewerFormat when the file cannot be trusted.
        """
        path, fs = self._path(), self._env.fs
        if fs.exists(path):
            self._table = TokenTable(self._table.secret, parse(path, fs.read_text(path)))

    def all(self) -> list[DelegationToken]:
        """Every token of the broker's secret; ended ones until they are swept, as in Kafka."""
        return [each for each in self._table.rows.values() if self._table.is_ours(each)]

    def hmac_of(self, token: DelegationToken) -> bytes:
        """The HMAC of a token, which is its password."""
        return self._table.secret.hmac_of(token.token_id)

    def name_of(self, hmac: bytes) -> str:
        """The id and the owner of the token with this HMAC; empty when there is none."""
        token = self._table.by_hmac(hmac)
        return "" if token is None else f"{token.token_id} of {token.owner}"

    def credential_or_decoy(self, token_id: str, mechanism: Mechanism) -> Credential:
        """The password of a token; without such a token, one that nothing opens."""
        decoy = self._table.secret.decoy(token_id, mechanism)  # always: it takes time
        token = self._living(token_id)
        return decoy if token is None else token.credentials[mechanism]

    def proof(self, token_id: str, mechanism: Mechanism, credential: Credential) -> Proof | None:
        """A log-in as the token's owner until it ends; None when it does not let anybody in."""
        token = self._living(token_id)
        if token is None or token.credentials[mechanism] != credential:
            return None
        return Proof(token.owner, TokenKey(token_id), token.expires_ms, by_token=True)

    async def create(self, wish: Wish) -> DelegationToken:
        """A new token, durable. Raises StorageError, or POLICY_VIOLATION (44) beyond the limits."""

        async def create() -> DelegationToken:
            self._check_room(wish.owner)
            token = await self._patient.run(self._made, wish, self._table.secret)
            await self._decide(partial(self._table.with_token, token))
            return token

        return await on_the_newest(self.authority, self._changing, create)

    async def renew(self, hmac: bytes, period_ms: int, user: str) -> int:
        """Another end for a token; gives the time. KafkaError as Kafka's, StorageError."""

        async def renew() -> int:
            token, now_ms = self._asked(hmac), self._env.clock.now_ms()
            _check_has_not_ended(token, now_ms)
            _check_may_change(token, user)
            asked_ms = min(period_ms, self._period_ms) if period_ms > 0 else self._period_ms
            return await self._end_at(token, now_ms + asked_ms)

        return await on_the_newest(self.authority, self._changing, renew)

    async def expire(self, hmac: bytes, period_ms: int, user: str) -> int:
        """Another end for a token, at once for a negative period; gives the time.

        KafkaError as Kafka's, StorageError.
        """

        async def expire() -> int:
            token, now_ms = self._asked(hmac), self._env.clock.now_ms()
            _check_may_change(token, user)
            if period_ms < 0:
                await self._remove([token])
                return now_ms
            _check_has_not_ended(token, now_ms)
            return await self._end_at(token, now_ms + period_ms)

        return await on_the_newest(self.authority, self._changing, expire)

    async def sweep(self) -> None:
        """Removes the tokens that have ended. Raises StorageError.

        Of the nodes of a fleet one does, and the others hear of it.
        """
        async with self._changing:
            now_ms = self._env.clock.now_ms()
            ended = [each for each in self._table.rows.values() if each.has_ended(now_ms)]
            with suppress(NotDecided):
                if ended:
                    await self._remove(ended)

    async def follow(self, content: bytes) -> None:
        """Has the tokens that an authority has decided. CorruptCheckpoint, NewerFormat."""
        async with self._changing:
            table = await self._lane.run(_parsed, self._table.secret, content)
            await self._use(table, content)

    def _living(self, token_id: str) -> DelegationToken | None:
        """The token of this id, if a log-in by it is good now."""
        token = self._table.get(token_id)
        if token is None or token.has_ended(self._env.clock.now_ms()):
            return None
        return token

    def _asked(self, hmac: bytes) -> DelegationToken:
        token = self._table.by_hmac(hmac)
        if token is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token

    async def _end_at(self, token: DelegationToken, expires_ms: int) -> int:
        changed = token.ending(expires_ms)
        await self._decide(partial(self._table.with_token, changed))
        return changed.expires_ms

    async def _remove(self, tokens: list[DelegationToken]) -> None:
        await self._decide(partial(self._table.without, tokens))

    def _made(self, wish: Wish, secret: TokenSecret) -> DelegationToken:
        """On a patient lane: deriving passwords takes milliseconds."""
        env = self._env
        token_id, now_ms = id_of(env.rng.uuid()), env.clock.now_ms()
        longest_ms = self._longest_ms
        if wish.lifetime_ms > 0:
            longest_ms = min(longest_ms, wish.lifetime_ms)
        return DelegationToken(
            token_id,
            wish.owner,
            wish.requester,
            wish.renewers,
            now_ms,
            now_ms + min(longest_ms, self._period_ms),
            now_ms + longest_ms,
            secret.mark,
            {each: secret.credential(token_id, each) for each in Mechanism},
        )

    async def _decide(self, change: Callable[[], TokenTable]) -> None:
        """The next table, made on the lane, counts when it is decided. StorageError."""
        table, content = await self._lane.run(_rendered, change)
        await self.authority.decided(DOCUMENT, content)
        await self._use(table, content)

    async def _use(self, table: TokenTable, content: bytes) -> None:
        write = partial(self._lane.run, self._env.fs.write_atomically, self._path(), content)
        await keep(self.authority, DOCUMENT, partial(self._replace, table), write)

    def _replace(self, table: TokenTable) -> None:
        """Sessions of those that are gone, or end earlier, end with them."""
        before, self._table = self._table, table
        for token_id, was in before.rows.items():
            now = table.rows.get(token_id)
            if now is None:
                self.on_removed(TokenKey(token_id))
            elif now.expires_ms < was.expires_ms:
                self.on_ending(TokenKey(token_id), now.expires_ms)

    def _check_room(self, owner: str) -> None:
        if len(self._table) >= MAX_TOKENS:
            text = f"There are {MAX_TOKENS} delegation tokens already"
        elif self._table.count_of(owner) >= MAX_OF_AN_OWNER:
            text = f"{owner} has {MAX_OF_AN_OWNER} delegation tokens already"
        else:
            return
        raise KafkaError(ErrorCode.POLICY_VIOLATION, text)

    def _path(self) -> str:
        return f"{self._lane.log_dir}/{FILE_NAME}"


def _rendered(change: Callable[[], TokenTable]) -> tuple[TokenTable, bytes]:
    table = change()
    return table, table.as_bytes()


def _parsed(secret: TokenSecret, content: bytes) -> TokenTable:
    return TokenTable(secret, parse(DOCUMENT, content.decode()))


def _check_has_not_ended(token: DelegationToken, now_ms: int) -> None:
    if token.has_ended(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_may_change(token: DelegationToken, user: str) -> None:
    if not token.may_be_changed_by(user):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _ignored(_: TokenKey) -> None:
    """Nobody is connected yet."""


def _ignored_end(_: TokenKey, __: int) -> None:
    """Nobody is connected yet."""
