"""A setting that nobody reads does not exist.

Every declared key is used outside of `config`, or by what `config` derives from several of them.
"""

import re
from pathlib import Path

import pytest

from config.names import BROKER_KEYS, TOPIC_KEYS
from config.resources.group import BOUNDS, GROUP_KEYS

ROOT = Path(__file__).resolve().parents[3]
READERS = [
    path
    for package in ("broker", "storage")
    for path in (ROOT / package).rglob("*.py")
    if path != ROOT / "broker" / "cli" / "config.py"
]
RULES = [ROOT / "config" / each / "rules.py" for each in ("tier", "fleet")]


@pytest.fixture(scope="module")
def attributes_read() -> set[str]:
    """Every name that stands after a dot in the code that could read a snapshot."""
    read = {name for path in READERS for name in re.findall(r"\.([a-z0-9_]+)\b", path.read_text())}
    derived = "".join(
        (ROOT / f"config/{each}.py").read_text() for each in ("broker", "security/tls")
    )
    read |= set(re.findall(r"\bself\.([a-z0-9_]+)\b", derived))
    rules = "".join(each.read_text() for each in RULES)
    return read | set(re.findall(r"\b(?:broker|config)\.([a-z0-9_]+)\b", rules))


OF_GROUPS = {key.broker_name for key in GROUP_KEYS if key.on_broker}.union(*BOUNDS.values()) - {
    None
}
"""Keys of the broker that are read as part of the settings of a group."""
READ_BY_NAME = [
    *TOPIC_KEYS,
    *GROUP_KEYS,
    *(key for key in BROKER_KEYS if key.name not in OF_GROUPS),
]


@pytest.mark.parametrize("key", READ_BY_NAME, ids=lambda key: key.name)
def test_a_declared_key_is_read_by_somebody(key, attributes_read: set[str]) -> None:
    assert key.attribute in attributes_read


def test_the_keys_of_the_broker_for_groups_are_there() -> None:
    assert {key.name for key in BROKER_KEYS} >= OF_GROUPS
    of_broker = {key.name for key in GROUP_KEYS if key.on_broker}
    assert of_broker == BOUNDS.keys() | {"streams.initial.rebalance.delay.ms"}
