"""PLAIN (RFC 4616): a name and a password in the clear, compared with the credentials of SCRAM.

The comparison is slow on purpose (PBKDF2, milliseconds) and runs on threads of its own, two at a
time, which give way to all others; a client that knows its password is let in again without it for
a minute. Unknown users cost the same. One address may have a quarter of the waiting places: who
guesses passwords there does not keep others out. All texts are Kafka 4.3's (PlainSaslServer).
"""

import hmac
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred
from broker.runtime.lanes import DiskLane, settle
from broker.security.credentials import CredentialKey, is_password
from broker.security.sasl.exchange import AuthenticationFailed, Proof
from broker.security.users import Users
from storage.env import Rng

MOST_WAITING = 64
MOST_OF_AN_ADDRESS = 16
REMEMBERED_SECONDS = 60.0
MOST_REMEMBERED = 1000
TOKENS = 3


class _Proven(NamedTuple):
    digest: bytes
    key: CredentialKey
    credential: object
    until: float


class Passwords:
    """Compares passwords with credentials. Used from the event loop."""

    def __init__(
        self, users: Users, lane: DiskLane, rng: Rng, monotonic: Callable[[], float]
    ) -> None:
        """`lane` has the threads."""
        self._users = users
        self._lane = lane
        self._monotonic = monotonic
        self._secret = rng.uuid().bytes + rng.uuid().bytes
        self._proven: dict[str, _Proven] = {}
        self._waiting: Counter[str] = Counter()

    def check(self, user: str, password: bytes, host: str) -> "Deferred[CredentialKey | None]":
        """The credential that the password is right for; None when it is wrong.

        Raises CloseConnection while too many wait, of all or of the address `host`.
        """
        answer: Deferred[CredentialKey | None] = Deferred()
        mechanism, credential = self._users.for_password(user)
        key = CredentialKey(user, mechanism)
        digest = hmac.digest(self._secret, password, "sha256")
        if self._is_remembered(user, digest, credential):
            answer.resolve(key)
            return answer
        self._take_place(host)
        compared: Deferred[bool] = Deferred()

        def judged(is_right: bool | None, error: BaseException | None) -> None:
            self._leave_place(host)
            if error is not None:
                answer.fail(error)
                return
            known = self._users.credential(user, mechanism) == credential
            if is_right and known:
                self._remember(_Proven(digest, key, credential, self._now() + REMEMBERED_SECONDS))
            answer.resolve(key if is_right and known else None)

        compared.listen(judged)
        future = self._lane.run(is_password, mechanism, credential, password)
        future.add_done_callback(lambda done: settle(compared, done))
        return answer

    def _take_place(self, host: str) -> None:
        if self._waiting[host] >= MOST_OF_AN_ADDRESS or self._waiting.total() >= MOST_WAITING:
            raise CloseConnection("authentication_busy", "too many passwords are being compared")
        self._waiting[host] += 1

    def _leave_place(self, host: str) -> None:
        self._waiting[host] -= 1
        if not self._waiting[host]:
            del self._waiting[host]

    def _is_remembered(self, user: str, digest: bytes, credential: object) -> bool:
        proven = self._proven.get(user)
        if proven is None:
            return False
        if proven.until < self._now() or proven.credential != credential:
            del self._proven[user]
            return False
        return hmac.compare_digest(proven.digest, digest)

    def _remember(self, proven: _Proven) -> None:
        self._proven.pop(proven.key.user, None)
        if len(self._proven) >= MOST_REMEMBERED:
            del self._proven[next(iter(self._proven))]
        self._proven[proven.key.user] = proven

    def _now(self) -> float:
        return self._monotonic()


class PlainExchange:
    """One authentication: one token, and an empty answer."""

    def __init__(self, passwords: Passwords, host: str) -> None:
        """Waits for the token of a client at the address `host`."""
        self._host = host
        self.claimed = ""
        self.proven: Proof | None = None
        self._passwords = passwords

    def step(self, token: bytes) -> Deferred[bytes]:
        """Raises AuthenticationFailed at once for a token that makes no sense, else fails later."""
        authzid, user, password = _parts(token)
        self.claimed = user
        if not user:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        answer: Deferred[bytes] = Deferred()

        def judged(key: CredentialKey | None, error: BaseException | None) -> None:
            if error is not None:
                answer.fail(error)
            elif key is None:
                answer.fail(
                    AuthenticationFailed("Authentication failed: Invalid username or password")
                )
            elif authzid not in ("", user):
                answer.fail(
                    AuthenticationFailed(
                        "Authentication failed: Client requested an authorization id that is "
                        "different from username"
                    )
                )
            else:
                self.proven = Proof(key.user, key)
                answer.resolve(b"")

        self._passwords.check(user, password.encode(), self._host).listen(judged)
        return answer


def _parts(token: bytes) -> tuple[str, str, str]:
    """Authorization id, user and password; bytes that are no UTF-8 become U+FFFD, as in Java."""
    parts = token.decode("utf-8", "replace").split("\0", TOKENS)
    if len(parts) != TOKENS:
        raise AuthenticationFailed(
            f"Invalid SASL/PLAIN response: expected {TOKENS} tokens, got {len(parts)}"
        )
    return parts[0], parts[1], parts[2]
