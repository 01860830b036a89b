"""Client telemetry and its library are there for who asks for them, and for nobody else."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from broker.daemon.fleet import SERVED
from broker.daemon.telemetry import HANDLERS, check_telemetry_library, serves
from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore


def config(*flags: str) -> ConfigStore:
    return ConfigStore(load(flags=flags, environment={}).layers)


ON = "horolog.client.telemetry.enable=true"


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.proto", "google.protobuf"])
def test_a_start_without_the_library_is_refused_by_its_name(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_telemetry_library(config(ON))
    loaded = [each for each in sys.modules if f"{each}.".startswith(f"{missing}.")]
    for each in {missing, *loaded}:
        monkeypatch.setitem(sys.modules, each, None)
    with pytest.raises(ConfigError, match=r"needs the library .*: pip install 'horolog\[telemetry"):
        check_telemetry_library(config(ON))
    check_telemetry_library(config())


@pytest.mark.parametrize("flag", ["telemetry.max.bytes=0", "telemetry.max.bytes=8388609"])
def test_a_bound_on_pushes_has_bounds(flag: str) -> None:
    with pytest.raises(ConfigError, match=r"telemetry\.max\.bytes"):
        config(flag)


def test_a_fleet_serves_it_with_the_setting_as_a_lone_broker_does() -> None:
    fleet: Any = SimpleNamespace(serves=lambda api: api in SERVED)
    for api in HANDLERS:
        for beside in (None, fleet):
            assert serves(config(ON), beside)(api)
            assert not serves(config(), beside)(api)
    assert serves(config(), None)("share_fetch")
    assert not serves(config(ON), fleet)("share_fetch")
