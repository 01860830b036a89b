"""Reasons for which a connection is ended: all that are used are known to whoever counts them."""

import re
from pathlib import Path

from broker.runtime.connection_limits import CLOSE_REASONS, CloseConnection

BROKER = Path(__file__).parents[4] / "broker"
USED = re.compile(r'CloseConnection\(\s*"([a-z_]+)"')


def test_every_reason_that_is_used_can_be_used() -> None:
    used = {name for file in BROKER.rglob("*.py") for name in USED.findall(file.read_text())}
    assert {"audit_lost", "unchecked_handler", "malformed"} <= used
    for name in sorted(used):
        assert CloseConnection(name).reason == name
    assert used <= CLOSE_REASONS
