"""The README's table of clients is what the tests run."""

from tests.support.clients.client_matrix import LANGUAGES, current, exercises
from tests.support.clients.client_programs import CLIENTS


def test_the_table_is_current() -> None:
    text, wanted = current(fixed_only=True)
    assert text == wanted, "scripts/docs brings it up to date"


def test_every_client_that_subscribes_is_in_it() -> None:
    assert {client.name for client in CLIENTS} <= exercises().keys() == LANGUAGES.keys()
