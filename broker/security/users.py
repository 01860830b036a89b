"""The users of a broker and their credentials: set by administrators, durable, read at each log-in.

A change is checked, written, and then counts. There is one table for all mechanisms: PLAIN compares
passwords with the credentials of SCRAM.
"""

import asyncio
import hmac
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from broker.runtime.documents import (
    DecidesDocumentsHere,
    DocumentAuthority,
    keep,
    on_the_newest,
)
from broker.security.credentials import (
    MIN_ITERATIONS,
    Credential,
    CredentialKey,
    Mechanism,
    salt_of,
)
from broker.security.sasl.exchange import Proof
from broker.security.users_file import UsersFile, UserTable, parse, render

if TYPE_CHECKING:
    from broker.runtime.lanes import DiskLane
    from storage.env import FileSystem, Rng

DOCUMENT = "users"
"""Name of the document that they are in a fleet."""
CredentialRows = Mapping[CredentialKey, Credential]
_STRONGEST_FIRST = (Mechanism.SCRAM_SHA_512, Mechanism.SCRAM_SHA_256)


class Users:
    """The credentials in force. Used from the event loop only, but for `load`."""

    def __init__(self, fs: "FileSystem", lane: "DiskLane", rng: "Rng") -> None:
        """Nobody is known until `load`."""
        self._file = UsersFile(fs, lane.log_dir, rng)
        self._lane = lane
        self.on_removed: Callable[[CredentialKey], None] = _ignored
        """Called for each credential that is no longer there."""
        self.authority: DocumentAuthority = DecidesDocumentsHere()
        self.changing = asyncio.Lock()
        self._publish(self._file.empty)

    @property
    def rows(self) -> Mapping[CredentialKey, Credential]:
        """Every credential there is; a change makes another mapping."""
        return self._rows

    def load(self) -> None:
        """Before clients may come: who was known when it ran last. Blocks.

        Raises CorruptCheckpoint or NewerFormat when the file cannot be trusted.
        """
        self._publish(self._file.read())

    async def change(self, change: Callable[[CredentialRows], CredentialRows]) -> None:
        """Makes what `change` gives durable, then lets it count. Raises StorageError.

        In a fleet it is asked again when another node was faster.
        """

        async def store() -> None:
            await self.store(change(self._rows))

        await on_the_newest(self.authority, self.changing, store)

    async def store(self, rows: Mapping[CredentialKey, Credential]) -> None:
        """Makes `rows` durable, then lets them count. Hold `changing`. Raises StorageError."""
        if rows == self._rows:
            self.authority.check_known(DOCUMENT)
        else:
            table = self._table.with_rows(rows)
            await self.authority.decided(DOCUMENT, render(table))
            await self._use(table)

    async def follow(self, content: bytes) -> None:
        """Has the users that an authority has decided. CorruptCheckpoint, NewerFormat."""
        table = parse(DOCUMENT, content.decode())
        async with self.changing:
            await self._use(table)

    async def _use(self, table: UserTable) -> None:
        write = partial(self._lane.run, self._file.write, table)
        await keep(self.authority, DOCUMENT, partial(self._replace, table), write)

    def _replace(self, table: UserTable) -> None:
        before = self._rows
        self._publish(table)
        for key in before.keys() - table.rows.keys():
            self.on_removed(key)

    def credential(self, user: str, mechanism: Mechanism) -> Credential | None:
        """The credential of a user, if there is one."""
        return self._rows.get(CredentialKey(user, mechanism))

    def credential_or_decoy(self, user: str, mechanism: Mechanism) -> Credential:
        """The credential of a user; of an unknown one, a credential without a password.

        The same name gets the same decoy each time, over restarts too once a user was stored.
        """
        decoy = self._decoy(user, mechanism)  # of known users too: it takes time
        return self.credential(user, mechanism) or decoy

    def proof(self, user: str, mechanism: Mechanism, credential: Credential) -> Proof | None:
        """The meaning of a log-in by a credential; None when it is not in force (any more)."""
        if self.credential(user, mechanism) != credential:  # a fleet's are read again
            return None
        return Proof(user, CredentialKey(user, mechanism))

    def for_password(self, user: str) -> tuple[Mechanism, Credential]:
        """The credential that a password is compared with: the user's strongest, or a decoy."""
        for mechanism in _STRONGEST_FIRST:
            found = self.credential(user, mechanism)
            if found is not None:
                return mechanism, found
        return self._usual, self._decoy(user, self._usual)

    def _publish(self, table: UserTable) -> None:
        kinds = Counter((key.mechanism, each.iterations) for key, each in table.rows.items())
        counts = {mechanism: Counter[int]() for mechanism in Mechanism}
        for (mechanism, iterations), count in kinds.items():
            counts[mechanism][iterations] = count
        self._iterations = {
            mechanism: of.most_common(1)[0][0] if of else MIN_ITERATIONS
            for mechanism, of in counts.items()
        }
        self._usual = max(_STRONGEST_FIRST, key=lambda each: counts[each].total())
        self._table = table
        self._rows = MappingProxyType(table.rows)

    def _decoy(self, user: str, mechanism: Mechanism) -> Credential:
        """The same as a credential in its kind of salt, its iterations, and the time it takes."""

        def derive(purpose: str) -> bytes:
            text = f"{purpose}\0{mechanism.name}\0{user}".encode()
            return hmac.digest(self._table.secret, text, "sha512")

        salt = salt_of(int.from_bytes(derive("salt")))
        size = mechanism.key_bytes
        keys = derive("stored")[:size], derive("server")[:size]
        return Credential(salt, self._iterations[mechanism], *keys)


def _ignored(_: CredentialKey) -> None:
    """Nobody is connected yet."""
