"""Each path of the HTTP API gets the services that its subject names, of the types it names."""

from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest

from broker.http.admin_api import ApiServices
from broker.http.port.route import NoServices
from broker.http.routes import ROUTES
from broker.server.services import bound
from tests.support.worlds.app import make_broker

DECLARED = {route.services for route in ROUTES} | {ApiServices}


def name_of(declared: type[Any]) -> str:
    return declared.__name__


@pytest.mark.parametrize("declared", sorted(DECLARED, key=name_of), ids=name_of)
async def test_every_service_is_of_its_type(declared: type[NamedTuple], tmp_path: Path) -> None:
    given = bound(declared, make_broker(tmp_path / "data").services)
    for name, hint in get_type_hints(declared).items():
        kinds = [each for each in (get_args(hint) or (hint,)) if isinstance(each, type)]
        protocols = any(getattr(each, "_is_protocol", False) for each in kinds)
        value = getattr(given, name)
        assert protocols or isinstance(value, tuple(kinds)), (name, value, hint)


def test_a_subject_names_a_handful_of_services() -> None:
    assert {name_of(each): len(each._fields) for each in DECLARED if len(each._fields) > 8} == {}
    assert [each for each in DECLARED if not each._fields] == [NoServices]
