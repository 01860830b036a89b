"""Sources of settings when the broker starts: flags over environment over file.

Flags are pinned: they override values stored at run time, too.

The only module of this package that reads files or the environment. Environment names follow
Kafka's rule: after `KAFKA_`, one underscore is a dot, two are an underscore, three a dash; after
`HOROLOG_` the same, for our own keys. Every mistake of all sources is reported at once.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from config.alter import read_setting
from config.errors import ConfigError, SeveralConfigError
from config.foreign.kept import is_kept
from config.foreign.known import is_no_setting, why_ignored
from config.layers import Layer, Setting, SettingSource
from config.names import broker_name
from config.references import References, is_of_providers

_UNDERSCORES = {"_": ".", "__": "_", "___": "-"}
KAFKA_PREFIX, OWN_PREFIX = "KAFKA_", "HOROLOG_"
_OTHERS = 0o006  # of a file's mode: neither its owner nor its group


@dataclass(frozen=True, slots=True)
class Assignment:
    """A name and a text, as they were written, and where."""

    name: str
    text: str
    where: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """A setting without effect here, and the reason to tell the user."""

    name: str
    where: str
    reason: str

    def __str__(self) -> str:
        """One line for the log."""
        return f"{self.where}: {self.name} is ignored: {self.reason}"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Layers for a `ConfigStore`, highest first, and what was set in vain."""

    layers: tuple[Layer, ...]
    ignored: tuple[Ignored, ...]


def load(
    *,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    file: str | None = None,
) -> Loaded:
    """Reads all sources. `flags` are `key=value`; `environment` is the process's unless given.

    Raises ConfigError (SeveralConfigError for more than one mistake) with every key that is
    unknown, set twice in the file, or has a value that it cannot take. A file that cannot be read
    is a ConfigError too.
    """
    errors: list[ConfigError] = []
    ignored: list[Ignored] = []
    variables = os.environ if environment is None else environment
    sources: list[Callable[[], list[Assignment]]] = [
        lambda: read_flags(flags),
        lambda: read_environment(variables),
        lambda: read_file(file) if file is not None else [],
    ]
    assigned = [_read(source, errors) for source in sources]
    references = _references(assigned, variables, errors)
    private = [None, None, file]
    layers = tuple(
        _layer(each, references, path, errors, ignored)
        for each, path in zip(assigned, private, strict=True)
    )
    layers = (replace(layers[0], pinned=True), *layers[1:])
    if len(errors) > 1:
        raise SeveralConfigError(errors)
    if errors:
        raise errors[0]
    return Loaded(layers, tuple(ignored))


def read_flags(flags: Iterable[str]) -> list[Assignment]:
    """`key=value` of `--set`; the last of several for one key wins."""
    return [_flag(text) for text in flags]


def read_environment(environment: Mapping[str, str]) -> list[Assignment]:
    """The variables with our prefixes, by the names of the keys they mean."""
    return [
        Assignment(key_of_variable(variable), text, f"environment variable {variable}")
        for variable, text in sorted(environment.items())
        if variable.startswith((KAFKA_PREFIX, OWN_PREFIX)) and not is_no_setting(variable)
    ]


def read_file(path: str) -> list[Assignment]:
    """`.yaml` and `.yml` as YAML, anything else as Java properties. ConfigError names the line."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        entries = list(_reader_of(path)(text))
    except (OSError, ValueError) as error:
        raise ConfigError("", _why_unreadable(path, error)) from error
    lines: dict[str, int] = {}
    for name, _, line in entries:
        if name in lines:
            raise ConfigError(
                name, f"{name} is set in line {lines[name]} already", where=f"{path}:{line}"
            )
        lines[name] = line
    return [Assignment(name, value, f"{path}:{line}") for name, value, line in entries]


def key_of_variable(variable: str) -> str:
    """KAFKA_LOG_RETENTION_MS is log.retention.ms, HOROLOG_DURABILITY is horolog.durability."""
    prefix = KAFKA_PREFIX if variable.startswith(KAFKA_PREFIX) else OWN_PREFIX
    name = re.sub(
        r"_{1,3}", lambda match: _UNDERSCORES[match[0]], variable.removeprefix(prefix).lower()
    )
    return name if prefix == KAFKA_PREFIX else f"horolog.{name}"


def variable_of_key(name: str) -> str:
    """The environment variable that sets the broker key `name`."""
    own = name.startswith("horolog.")
    text = name.removeprefix("horolog.").replace("_", "__").replace("-", "___").replace(".", "_")
    return f"{OWN_PREFIX if own else KAFKA_PREFIX}{text.upper()}"


def _flag(text: str) -> Assignment:
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError(name, f"{text!r} is not key=value", where="--set")
    return Assignment(name.strip(), value.strip(), f"--set {name.strip()}")


def _reader_of(path: str) -> Callable[[str], Iterable[tuple[str, str, int]]]:
    if path.endswith((".yaml", ".yml")):
        from config.yaml_text import read_yaml

        return read_yaml
    from config.properties import read_properties

    return read_properties


def _why_unreadable(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return f"{path} cannot be read: {error.strerror}"
    line = re.match(r"line (\d+): ", str(error))
    return f"{path}:{line[1]}: {str(error)[line.end() :]}" if line else f"{path}: {error}"


def _read(read: Callable[[], list[Assignment]], errors: list[ConfigError]) -> list[Assignment]:
    try:
        return read()
    except ConfigError as error:
        errors.append(error)
        return []


def _references(
    assigned: Sequence[list[Assignment]],
    variables: Mapping[str, str],
    errors: list[ConfigError],
) -> References:
    """The providers that the sources declare, a higher one over those below it."""
    of_providers = {
        each.name: each
        for source in reversed(assigned)
        for each in source
        if is_of_providers(each.name)
    }
    declared = {name: each.text for name, each in of_providers.items()}
    try:
        return References(declared, _text_of, variables)
    except ConfigError as error:
        at = of_providers.get(error.key)
        errors.append(error.at(at.where) if at is not None else error)
        return References({}, _text_of, variables)


def _text_of(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _layer(
    assignments: list[Assignment],
    references: References,
    path: str | None,
    errors: list[ConfigError],
    ignored: list[Ignored],
) -> Layer:
    """One source as a layer; mistakes and vain settings go to the lists. `path`: its file."""
    settings: dict[str, Setting] = {}
    for each in assignments:
        if is_of_providers(each.name):
            continue
        reason = why_ignored(each.name, each.text)
        if reason is not None:
            ignored.append(Ignored(each.name, each.where, reason))
            if not is_kept(each.name):
                continue
        try:
            settings[each.name] = _setting(each, references, path)
        except ConfigError as error:
            errors.append(error)
    return Layer(SettingSource.STATIC_BROKER, settings)


def _setting(each: Assignment, references: References, path: str | None) -> Setting:
    """ConfigError, too, for a secret in a file that every user of this machine can read."""
    try:
        resolved = references.resolve(each.text)
    except ValueError as error:
        raise ConfigError(each.name, f"{each.name}: {error}", where=each.where) from None
    if not resolved.is_reference:
        found = read_setting(each.name, each.text, broker_name, where=each.where)
        _check_private(each, [path] if path else [])
        return found
    try:
        found = read_setting(each.name, resolved.text, broker_name, where=each.where)
    except ConfigError:  # its text may quote the value
        bounds = broker_name(each.name).spelling.type.bounds()
        message = f"{each.name}: the value of {each.text} is not {bounds}"
        raise ConfigError(each.name, message, where=each.where) from None
    _check_private(each, resolved.files)
    return replace(found, reference=each.text)


def _check_private(each: Assignment, paths: Iterable[str]) -> None:
    if not each.text or not any(key.sensitive for key in broker_name(each.name).keys):
        return
    for path in paths:
        if Path(path).stat().st_mode & _OTHERS:
            raise ConfigError(
                each.name,
                f"{each.name} is a secret, and every user of this machine can read {path}: "
                f"chmod o= {path}",
                where=each.where,
            )
