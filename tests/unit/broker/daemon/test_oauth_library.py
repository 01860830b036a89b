"""The library of tokens is needed by who asks for OAUTHBEARER, and by nobody else."""

import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.daemon.oauth_listeners import check_library
from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore


def services(*flags: str) -> Any:
    """As far as the check looks."""
    return cast(
        "Any", SimpleNamespace(config=ConfigStore(load(flags=flags, environment={}).layers))
    )


OAUTH = (
    "listeners=SASL_PLAINTEXT://127.0.0.1:1",
    "sasl.enabled.mechanisms=OAUTHBEARER",
    "horolog.sasl.oauthbearer.unsecured=true",
)


def test_a_start_without_the_library_is_refused_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_library(services(*OAUTH))
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(ConfigError, match=r"needs the library joserfc: pip install 'horolog"):
        check_library(services(*OAUTH))
    check_library(services("listeners=SASL_PLAINTEXT://127.0.0.1:1"))
