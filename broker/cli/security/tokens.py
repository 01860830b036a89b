"""`horolog tokens`: delegation tokens of a running broker (KIP-48).

A token's HMAC is its password: it is shown once, by `create`. Other commands name a token by its
id, and ask the broker for the rest.
"""

import json
from base64 import b64encode
from typing import Any

import click

from broker.cli.security.wire_client import WireClient, wired
from broker.cli.tables import TablePage
from broker.runtime.principals import USER
from config.quantities import second
from config.values import millis
from protocol.apis.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from protocol.apis.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from protocol.apis.expire_delegation_token import ExpireDelegationTokenRequest
from protocol.apis.renew_delegation_token import RenewDelegationTokenRequest
from protocol.errors import ErrorCode

COLUMNS = ("token", "owner", "requested by", "renewed by", "ends", "at the latest")
USUAL = -1
"""A period that the broker chooses."""


def _millis(_: click.Context, __: click.Parameter, value: str | None) -> int:
    """Milliseconds of a duration with a unit, or without."""
    if value is None:
        return USUAL
    try:
        return millis(1).parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


DURATION: Any = {"metavar": "DURATION", "callback": _millis}


@click.group("tokens", short_help="Make, show, renew and end delegation tokens.")
def command() -> None:
    """Make, show, renew and end delegation tokens, which let their holder log in as their owner.

    The broker gives them to clients that logged in by other means: --command-config says how.
    """


@command.command("create", short_help="Make a token.")
@click.option("--owner", metavar="NAME", help="User that it logs in as; without it, you.")
@click.option(
    "--renewer", "renewers", metavar="NAME", multiple=True, help="User that may renew it."
)
@click.option(
    "--max-lifetime",
    "lifetime_ms",
    metavar="DURATION",
    callback=_millis,
    help="Time that it can last.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the token as JSON.")
@wired
def create(
    client: WireClient, *, owner: str | None, renewers: tuple[str, ...], lifetime_ms: int,
    as_json: bool,
) -> int:  # fmt: skip
    """Make a token. Its HMAC is its password, and is shown only now."""
    request = CreateDelegationTokenRequest(
        owner_principal_type=None if owner is None else USER,
        owner_principal_name=None if owner is None else _name(owner),
        renewers=[
            CreatableRenewers(principal_type=USER, principal_name=_name(each)) for each in renewers
        ],
        max_lifetime_ms=lifetime_ms,
    )
    made = client.call(request)
    if made.error_code:
        client.refuse(made.error_code)
    hmac = b64encode(made.hmac).decode()
    if as_json:
        click.echo(json.dumps(_made(made, hmac), indent=2))
        return 0
    click.echo(f"token {made.token_id}\nhmac  {hmac}")
    click.echo(f"owner {made.principal_name}\nends  {second(made.expiry_timestamp_ms)}", nl=False)
    click.echo(f", at the latest {second(made.max_timestamp_ms)}")
    return 0


@command.command("list", short_help="Show the tokens.")
@click.option("--owner", "owners", metavar="NAME", multiple=True, help="Those of this user.")
@wired
def show(client: WireClient, *, owners: tuple[str, ...]) -> int:
    """Show the tokens that you may see: yours, and those that you asked for or may renew."""
    rows = [
        (
            each.token_id,
            each.principal_name,
            each.token_requester_principal_name,
            ", ".join(renewer.principal_name for renewer in each.renewers),
            second(each.expiry_timestamp),
            second(each.max_timestamp),
        )
        for each in _described(client, owners)
    ]
    TablePage().table(COLUMNS, sorted(rows))
    return 0


@command.command("renew", short_help="Let a token end later.")
@click.argument("token")
@click.option(
    "--for", "period_ms", metavar="DURATION", callback=_millis, help="Time until it ends."
)
@wired
def renew(client: WireClient, token: str, *, period_ms: int) -> int:
    """Let a token end later, by its id."""
    found = _found(client, token)
    answer = client.call(RenewDelegationTokenRequest(hmac=found.hmac, renew_period_ms=period_ms))
    if answer.error_code:
        client.refuse(answer.error_code)
    click.echo(f"{token} ends {second(answer.expiry_timestamp_ms)}")
    return 0


@command.command("expire", short_help="End a token.")
@click.argument("token")
@click.option("--in", "period_ms", **DURATION, help="Time until it ends.")
@wired
def expire(client: WireClient, token: str, *, period_ms: int) -> int:
    """End a token, by its id: at once, or after a time. Its connections end with it."""
    found = _found(client, token)
    request = ExpireDelegationTokenRequest(hmac=found.hmac, expiry_time_period_ms=period_ms)
    answer = client.call(request)
    if answer.error_code:
        client.refuse(answer.error_code)
    ended = "has ended" if period_ms == USUAL else f"ends {second(answer.expiry_timestamp_ms)}"
    click.echo(f"{token} {ended}")
    return 0


def _described(client: WireClient, owners: tuple[str, ...] = ()) -> list[Any]:
    named = [
        DescribeDelegationTokenOwner(principal_type=USER, principal_name=_name(each))
        for each in owners
    ]
    answer = client.call(DescribeDelegationTokenRequest(owners=named or None))
    if answer.error_code:
        client.refuse(answer.error_code)
    tokens: list[Any] = answer.tokens
    return tokens


def _found(client: WireClient, token_id: str) -> Any:
    found = next((each for each in _described(client) if each.token_id == token_id), None)
    if found is None:
        text = f"there is no token {token_id} that you may see"
        client.refuse(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, text)
    return found


def _name(text: str) -> str:
    return text.removeprefix(f"{USER}:")


def _made(made: Any, hmac: str) -> dict[str, object]:
    return {
        "token": made.token_id,
        "hmac": hmac,
        "owner": made.principal_name,
        "ends_ms": made.expiry_timestamp_ms,
        "latest_ms": made.max_timestamp_ms,
    }
