"""Attacks on log-ins, by strangers who know names and guess passwords."""

import contextlib
import itertools
import socket
import statistics
import time
from collections.abc import Callable

from protocol.records.builder import build_batch
from tests.support.attacks.on_tls import hold, shower
from tests.support.attacks.target import ADMIN, PASSWORD, Attack, Stranger, Target, connect
from tests.support.clients.wire import frame
from tests.support.logins import clients

Strike = Callable[[Stranger], object]
SCRAM = "SCRAM-SHA-256"
ENOUGH_FOR_TIMES = 1000
GIBIBYTES = (0x7FFF_FFFF).to_bytes(4, "big")
HANDSHAKE = frame(clients.handshake("PLAIN"))
RAW_HANDSHAKE = frame(clients.handshake("PLAIN", 0))


class DifferenceError(Exception):
    """A stranger can tell apart what it must not."""


def again(target: Target, strike: Strike) -> int:
    """A new connection from a fresh address for each strike; the broker may end it at any time."""
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError, AssertionError):
            sock = connect(target.plain)
            sock.settimeout(target.rest() + 0.01)
            with Stranger.over(sock) as client:
                strike(client)
        struck += 1
    return struck


def _together(target: Target, token: bytes, number: int | None = None) -> int:
    """Hundreds of tokens are on their way at a time: nobody waits for the delayed answer."""
    held: list[socket.socket] = []
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError):
            sock = connect(target.plain, number)
            held.append(sock)
            sock.sendall(HANDSHAKE + frame(clients.authenticate(token)))
        struck += 1
        if len(held) > 300:
            held.pop(0).close()
    for sock in held:
        sock.close()
    return struck


def wrong_passwords(target: Target) -> int:
    """PLAIN with wrong passwords of a user that there is, from one address."""
    return _together(target, clients.plain(ADMIN, b"guess"), 0)


def wrong_passwords_from_everywhere(target: Target) -> int:
    """The same, each from another address."""
    return _together(target, clients.plain(ADMIN, b"guess"))


def unknown_users(target: Target) -> int:
    """PLAIN with names that there are not."""
    return _together(target, clients.plain("nobody", b"guess"))


def other_identity(target: Target) -> int:
    """A user's own password, and the wish to be another user."""
    token = clients.plain("mallory", PASSWORD.encode(), ADMIN)
    return again(target, lambda client: (client.shake("PLAIN"), client.show(token)))


def _first(client: Stranger, name: str) -> bytes:
    assert client.shake(SCRAM) == 0
    return client.show(clients.scram_first(name, "n0nce"))[1]


def wrong_proofs(target: Target) -> int:
    """SCRAM with random proofs."""

    def strike(client: Stranger) -> None:
        nonce = _first(client, ADMIN).split(b",")[0][2:]
        client.show(b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"=")

    return again(target, strike)


def first_tokens_alone(target: Target) -> int:
    """SCRAM is begun and left, again and again."""
    return again(target, lambda client: _first(client, "nobody"))


def long_user_names(target: Target) -> int:
    """SCRAM for names of 60 KB."""
    return again(target, lambda client: _first(client, "x" * 60_000))


def many_attributes(target: Target) -> int:
    """SCRAM with fifteen thousand extensions."""
    token = clients.scram_first(ADMIN, "n0nce") + b",a=b" * 15_000
    return again(target, lambda client: (client.shake(SCRAM), client.show(token)))


def names_by_time(target: Target) -> int:
    """First tokens of SCRAM for a known and an unknown name: the times must not tell them apart."""
    names = itertools.cycle((ADMIN, "nobody"))
    seconds: dict[str, list[float]] = {ADMIN: [], "nobody": []}

    def strike(client: Stranger) -> None:
        name = next(names)
        assert client.shake(SCRAM) == 0
        began = time.perf_counter()
        client.show(clients.scram_first(name, "n0nce"))
        seconds[name].append(time.perf_counter() - began)

    struck = again(target, strike)
    if struck > ENOUGH_FOR_TIMES:
        known, unknown = (statistics.median(each) for each in seconds.values())
        if not 0.8 < known / unknown < 1.25:
            raise DifferenceError(f"known names take {known:.6f} s, others {unknown:.6f} s")
    return struck


USUAL_SALTS = frozenset(len(b"s=") + 4 * -(-digits // 3) for digits in range(23, 27))
"""Lengths of salts in base 64: 130 random bits are rarely fewer than 25 letters and digits, known
names' as often as others'."""


def names_by_salt(target: Target) -> int:
    """An unknown name gets one salt and the iterations of known names, each time."""
    heard: dict[str, set[bytes]] = {ADMIN: set(), "nobody": set()}
    names = itertools.cycle(heard)

    def strike(client: Stranger) -> None:
        name = next(names)
        heard[name].add(_first(client, name).split(b",", 1)[1])

    struck = again(target, strike)
    found = [each for salts in heard.values() for each in salts]
    iterations = {each.rpartition(b",")[2] for each in found}
    is_usual = all(len(each.rpartition(b",")[0]) in USUAL_SALTS for each in found)
    if any(len(each) > 1 for each in heard.values()) or len(iterations) > 1 or not is_usual:
        raise DifferenceError(f"salts tell names apart: {heard}")
    return struck


def wrong_mechanisms(target: Target) -> int:
    """Mechanisms that the listener has not."""
    return again(target, lambda client: client.shake("GSSAPI"))


def handshakes_twice(target: Target) -> int:
    """A second handshake where a token is due."""
    return shower(target, target.plain, HANDSHAKE * 20)


def versions_for_ever(target: Target) -> int:
    """ApiVersions, again and again, from a client that does not log in."""
    return shower(target, target.plain, frame(clients.versions()) * 100)


def requests_before_the_log_in(target: Target) -> int:
    """Ten thousand Metadata in one go."""
    return shower(target, target.plain, frame(clients.other_request()) * 10_000)


def records_before_the_log_in(target: Target) -> int:
    """Half of a MiB of a Produce request."""
    batch = bytes(build_batch([(0, b"k", bytes(500_000))]))
    return shower(target, target.plain, frame(b"\x00\x00\x00\x09" + batch))


def announced_gibibytes(target: Target) -> int:
    """The length of the first frame is two GiB."""
    return hold(target, target.plain, GIBIBYTES)


def announced_tokens(target: Target) -> int:
    """The length of a token is two GiB, behind a handshake that has tokens without headers."""
    return hold(target, target.plain, RAW_HANDSHAKE + GIBIBYTES)


def almost_whole_tokens(target: Target) -> int:
    """Tokens of 64 KiB of which the last byte never comes."""
    token = frame(clients.authenticate(bytes(65_000)))[:-1]
    return hold(target, target.plain, HANDSHAKE + token)


def raw_tokens(target: Target) -> int:
    """Tokens without headers that make no sense."""
    return shower(target, target.plain, RAW_HANDSHAKE + frame(bytes(1000)) * 20)


def silent_guests(target: Target) -> int:
    """Connections that say nothing take the places of those that would log in."""
    return hold(target, target.plain, b"")


def half_log_ins(target: Target) -> int:
    """Connections that stop after the handshake."""
    return hold(target, target.plain, HANDSHAKE)


def gone_while_judged(target: Target) -> int:
    """The client is gone when its password has been compared."""
    token = frame(clients.authenticate(clients.plain(ADMIN, b"guess")))
    struck = 0
    while target.goes_on():
        with contextlib.suppress(OSError), connect(target.plain) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            sock.sendall(HANDSHAKE + token)
        struck += 1
    return struck


ATTACKS: tuple[Attack, ...] = (
    wrong_passwords, wrong_passwords_from_everywhere, unknown_users, other_identity, wrong_proofs,
    first_tokens_alone, long_user_names, many_attributes, names_by_time, names_by_salt,
    wrong_mechanisms, handshakes_twice, versions_for_ever, requests_before_the_log_in,
    records_before_the_log_in, announced_gibibytes, announced_tokens, almost_whole_tokens,
    raw_tokens, silent_guests, half_log_ins, gone_while_judged,
)  # fmt: skip
