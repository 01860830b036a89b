"""The line of `horolog --version`: the release, and whether the record walkers are compiled."""

from collections.abc import Iterator
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from importlib.metadata import version
from pkgutil import iter_modules

from protocol import records


def version_line() -> str:
    """`horolog VERSION (STATE)`; STATE is compiled, pure, or compiled except for some modules."""
    walkers = dict(_walkers())
    pure = sorted(name for name, is_compiled in walkers.items() if not is_compiled)
    state = "compiled"
    if pure:
        state = "pure" if len(pure) == len(walkers) else f"compiled except {', '.join(pure)}"
    return f"horolog {version('horolog')} ({state})"


def _walkers() -> Iterator[tuple[str, bool]]:
    """Each walker with whether it is compiled. A source is a walker when it imports cython."""
    for _, name, _ in iter_modules(records.__path__):
        loader = _loader(name)
        if isinstance(loader, ExtensionFileLoader):
            yield name, True
        elif isinstance(loader, SourceFileLoader) and _imports_cython(loader):
            yield name, False


def _imports_cython(loader: SourceFileLoader) -> bool:
    return "\nimport cython\n" in (loader.get_source(loader.name) or "")


def _loader(name: str) -> object:
    """The loader that an import of the module takes; nothing is imported."""
    from importlib.util import find_spec

    spec = find_spec(f"{records.__name__}.{name}")
    return spec.loader if spec else None
