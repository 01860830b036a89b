"""`horolog users`: users of a running broker, or of a data directory that none uses."""

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import click

from broker.cli.security.place import CommandPlace, held, placed
from broker.cli.security.wire_client import WireClient, description_of
from broker.cli.tables import TablePage
from broker.security.credentials import (
    BY_SASL_NAME,
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    CredentialKey,
    Mechanism,
    derived,
    salt_of,
    salted,
)
from protocol.apis import alter_user_scram_credentials as alter_api
from protocol.apis import describe_user_scram_credentials as describe_api
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from storage.env import Env, Rng

Rows = Iterable[tuple[str, Mechanism, int]]


@click.group("users", short_help="Show, add and remove users.")
def command() -> None:
    """Show, add and remove users of a broker, or with --offline of a data directory.

    Passwords are asked for, or read from standard input. They are not stored: the broker keeps what
    a log-in can be compared with (horolog-users.json).
    """


_mechanisms = click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    type=click.Choice(tuple(BY_SASL_NAME)),
    help="A mechanism of SCRAM; without it, both. PLAIN needs either.",
)


@command.command("add", short_help="Add a user, or give one another password.")
@click.argument("name")
@_mechanisms
@click.option(
    "--iterations",
    type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS),
    default=MIN_ITERATIONS,
    show_default=True,
    help="How slow it is to try a password.",
)
@placed
def add(place: CommandPlace, name: str, *, mechanisms: tuple[str, ...], iterations: int) -> int:
    """Add a user, or give one another password.

    The password is asked for, or read from standard input when that is no terminal (its first
    line).
    """
    if not name:
        raise click.UsageError("a user needs a name")
    if place.offline:
        _ = place.directory
    user = _NewUser(name, _password(), _named(mechanisms), iterations)
    if place.offline:
        with held(place.directory, make=True) as env:
            _store(env, place.directory, user)
    else:
        _send(place.client, user)
    click.echo(
        f"User {name} may log in by {', '.join(each.sasl_name for each in user.mechanisms)}."
    )
    return 0


@command.command("list", short_help="Show the users and how they log in.")
@placed
def show(place: CommandPlace) -> int:
    """Show the users and how they log in."""
    rows = _stored(place.directory) if place.offline else _told(place.client)
    TablePage().table(
        ("user", "mechanism", ">iterations"),
        [
            (name, mechanism.sasl_name, str(count))
            for name, mechanism, count in sorted(rows, key=str)
        ],
    )
    return 0


@command.command("remove", short_help="Remove a user.")
@click.argument("name")
@_mechanisms
@placed
def remove(place: CommandPlace, name: str, *, mechanisms: tuple[str, ...]) -> int:
    """Remove a user; its connections end."""
    wanted = _named(mechanisms)
    if place.offline:
        gone = _removed(place.directory, name, wanted)
    else:
        gone = [each for user, each, _ in _told(place.client, name) if each in wanted]
        _alter(place.client, [alter_api.Deletion(name=name, mechanism=each.value) for each in gone])
    if not gone:
        place.client.refuse(ErrorCode.RESOURCE_NOT_FOUND, f"there is no user {name}")
    click.echo(f"User {name} no longer logs in by {_listed(gone)}.")
    return 0


def _named(mechanisms: Iterable[str]) -> list[Mechanism]:
    return [BY_SASL_NAME[each] for each in mechanisms] or list(Mechanism)


def _listed(mechanisms: Iterable[Mechanism]) -> str:
    return ", ".join(each.sasl_name for each in mechanisms)


def _password() -> bytes:
    """Asked for twice at a terminal; never an argument, which every user of the machine can see."""
    if sys.stdin.isatty():
        text = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        text = sys.stdin.readline().rstrip("\r\n")
    if not text:
        raise click.UsageError("an empty password lets nobody in")
    return str(text).encode()


class _NewUser(NamedTuple):
    name: str
    password: bytes
    mechanisms: list[Mechanism]
    iterations: int


def _salt(rng: "Rng") -> bytes:
    return salt_of(int.from_bytes(rng.uuid().bytes + rng.uuid().bytes))


# -- a broker


def _send(client: WireClient, user: _NewUser) -> None:
    """The password does not leave this machine: it is salted here (KIP-554)."""
    from storage.posix import real_env

    changes = []
    for mechanism in user.mechanisms:
        salt = _salt(real_env().rng)
        key = salted(mechanism, user.password, salt, user.iterations)
        changes.append(
            alter_api.Upsertion(
                name=user.name,
                mechanism=mechanism.value,
                iterations=user.iterations,
                salt=salt,
                salted_password=key,
            )
        )
    _alter(client, changes)


def _alter(
    client: WireClient, changes: "Iterable[alter_api.Upsertion | alter_api.Deletion]"
) -> None:
    """One request for each: a user may be named once in a request."""
    for change in changes:
        request = alter_api.AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
        if isinstance(change, alter_api.Deletion):
            request.deletions = [change]
        else:
            request.upsertions = [change]
        for each in client.call(request).results:
            if each.error_code:
                client.refuse(each.error_code, each.error_message)


def _told(client: WireClient, name: str | None = None) -> Rows:
    named = None if name is None else [describe_api.UserName(name=name)]
    answer = client.call(describe_api.DescribeUserScramCredentialsRequest(users=named))
    if answer.error_code:
        client.refuse(answer.error_code, answer.error_message)
    for user in answer.results:
        if user.error_code not in {0, ErrorCode.RESOURCE_NOT_FOUND}:
            client.refuse(user.error_code, user.error_message or description_of(user.error_code))
        for each in user.credential_infos:
            yield user.user, Mechanism(each.mechanism), each.iterations


# -- a directory


def _store(env: "Env", path: str, user: _NewUser) -> None:
    from broker.cli.security.account import leave_trace
    from broker.security.users_file import UsersFile

    file = UsersFile(env.fs, path, env.rng)
    table = file.read()
    rows, count = dict(table.rows), user.iterations
    for mechanism in user.mechanisms:
        salt = _salt(env.rng)
        key = salted(mechanism, user.password, salt, count)
        rows[CredentialKey(user.name, mechanism)] = derived(mechanism, key, salt, count)
    file.write(table.with_rows(rows))
    names = ", ".join(each.sasl_name for each in user.mechanisms)
    detail = f"mechanisms={names} iterations={count}"
    command = "horolog users add"
    leave_trace(env, path, command, "alter user", resource=user.name, detail=detail)


def _stored(path: str) -> Rows:
    from broker.security.users_file import UsersFile

    with held(path) as env:
        rows = UsersFile(env.fs, path, env.rng).read().rows
    return [(key.user, key.mechanism, each.iterations) for key, each in rows.items()]


def _removed(path: str, name: str, mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    from broker.cli.security.account import leave_trace
    from broker.security.users_file import UsersFile

    with held(path) as env:
        file = UsersFile(env.fs, path, env.rng)
        table = file.read()
        gone = [each for each in mechanisms if CredentialKey(name, each) in table.rows]
        rows = {key: row for key, row in table.rows.items() if key not in {(name, m) for m in gone}}
        if gone:
            file.write(table.with_rows(rows))
            names = ", ".join(each.sasl_name for each in gone)
            command, detail = "horolog users remove", f"delete mechanisms={names}"
            leave_trace(env, path, command, "alter user", resource=name, detail=detail)
    return gone
