"""The record walkers twice: as the broker imports them, and from their source, never compiled."""

import importlib.util
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[3] / "protocol" / "records"


def from_source(name: str) -> ModuleType:
    """Load `protocol/records/<name>.py` under another name, past any compiled file beside it."""
    module_name = f"source_{name.replace('/', '_')}"
    spec = importlib.util.spec_from_file_location(module_name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
