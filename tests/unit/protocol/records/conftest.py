"""The walkers under test: whatever `scripts/compile` left, and the bare source."""

import importlib
from types import ModuleType

import pytest

from tests.support.records.record_walkers import from_source


@pytest.fixture(params=["built", "source"])
def walk(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "built":
        return importlib.import_module("protocol.records.walk")
    return from_source("walk")


@pytest.fixture(params=["built", "source"])
def scan(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "built":
        return importlib.import_module("protocol.records.scan")
    return from_source("scan")
