"""Each family of metrics gets the services that it names, of the types that it names."""

from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from broker.metrics.declare import Family
from broker.metrics.scrape import CATALOGUES
from broker.server.services import bound
from tests.support.worlds.app import make_broker

FAMILIES = [family for catalogue in CATALOGUES.values() for family in catalogue.families]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.services.__name__)
async def test_every_service_is_of_its_type(family: Family[Any], tmp_path: Path) -> None:
    given = bound(family.services, make_broker(tmp_path / "data").services)
    for name, hint in get_type_hints(family.services).items():
        parts = (get_origin(hint), *get_args(hint)) if get_args(hint) else (hint,)
        kinds = [each for each in parts if isinstance(each, type)]
        protocols = any(getattr(each, "_is_protocol", False) for each in kinds)
        value = getattr(given, name)
        assert protocols or isinstance(value, (*kinds, tuple)), (name, value, hint)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.services.__name__)
def test_a_family_names_a_handful_of_services(family: Family[Any]) -> None:
    assert len(family.services._fields) <= 5
    assert family.metrics
