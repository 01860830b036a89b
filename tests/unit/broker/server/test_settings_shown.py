"""Settings in the audit: those of groups and subscriptions with what they were before."""

import pytest

from broker.server.settings_shown import HIDDEN, altered_text, shown, values_before
from config.resources.kinds import ResourceKind
from config.store import ConfigStore
from tests.support.worlds.handler_world import altered

GROUP, CLIENT_METRICS = ResourceKind.GROUP, ResourceKind.CLIENT_METRICS


@pytest.mark.parametrize(
    ("kind", "key", "before", "after"),
    [
        (GROUP, "consumer.session.timeout.ms", "46000", "47000"),
        (CLIENT_METRICS, "interval.ms", "100", "200"),
    ],
)
def test_a_change_shows_the_value_before(
    kind: ResourceKind, key: str, before: str, after: str
) -> None:
    store = ConfigStore()
    store.commit(store.prepare(kind, "x", {key: before}))
    resource = altered(kind, "x", [(key, 0, after), ("no.such", 0, "secret")])
    text = altered_text(resource, values_before(resource, store))
    assert text == f"{key}={after} (was {before}) no.such={HIDDEN} (was default)"


def test_a_kind_that_nobody_knows_shows_nothing() -> None:
    resource = altered(99, "x", [("interval.ms", 0, "5")])
    assert values_before(resource, ConfigStore()) == {}
    assert shown("interval.ms", "5", 99) == HIDDEN
