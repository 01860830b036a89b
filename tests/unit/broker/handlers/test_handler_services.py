"""Each handler gets the services that it names, of the types that it names, and nothing else."""

from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest

from broker.daemon.routes import Served, served
from broker.daemon.services import Services
from broker.server.services import bound
from tests.support.worlds.app import make_broker

SERVED = served()


@pytest.fixture
async def services(tmp_path: Path) -> Services:
    return make_broker(tmp_path / "data").services


def is_of(value: object, hint: Any) -> bool:
    """Whether a value fits a type; Protocols are held by mypy where the daemon is checked."""
    kinds = [each for each in (get_args(hint) or (hint,)) if isinstance(each, type)]
    return any(getattr(kind, "_is_protocol", False) or isinstance(value, kind) for kind in kinds)


@pytest.mark.parametrize("each", SERVED, ids=lambda each: each.api.name)
async def test_every_service_is_of_its_type(each: Served, services: Services) -> None:
    declared = each.handler.Services
    given = bound(declared, services)
    hints = get_type_hints(declared)
    assert set(given._fields) == set(hints)
    for name, hint in hints.items():
        value = getattr(given, name)
        assert is_of(value, hint) or isinstance(value, tuple), (name, value, hint)


@pytest.mark.parametrize("each", SERVED, ids=lambda each: each.api.name)
def test_a_handler_names_a_handful_of_services(each: Served) -> None:
    assert len(each.handler.Services._fields) <= 10


async def test_a_service_that_nobody_has_fails_the_start(services: Services) -> None:
    class Wanted(NamedTuple):
        no_such_service: int

    with pytest.raises(AttributeError, match="no_such_service"):
        bound(Wanted, services)
