"""References in settings, in place of secrets: `${file:PATH:KEY}`, `${dir:PATH:FILE}`,
`${env:NAME}`.

Syntax and providers are Kafka's (KIP-297, KIP-421, KIP-887). Without `config.providers` the names
`file`, `dir`, `directory` and `env` are known; with it those that it lists, and no others. Other
than in Kafka, what is referred to and not there is refused, and references in requests stay text.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from config.errors import ConfigError
from config.properties import read_properties

PROVIDERS = "config.providers"
_REFERENCE = re.compile(r"\$\{([^}:]{1,200}):(?:([^}:]{0,4096}):)?([^}]{0,4096})\}")
_PACKAGE = "org.apache.kafka.common.config.provider."
_FILE, _DIRECTORY, _VARIABLE = (
    "FileConfigProvider",
    "DirectoryConfigProvider",
    "EnvVarConfigProvider",
)
_PARAMETERS = {
    _FILE: "allowed.paths",
    _DIRECTORY: "allowed.paths",
    _VARIABLE: "allowlist.pattern",
}

Read = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Provider:
    """One kind of reference. `allowed`: paths below which files may be, or a pattern of names."""

    kind: str
    allowed: str = ""


_BUILT_IN: Mapping[str, Provider] = {
    "file": Provider(_FILE),
    "dir": Provider(_DIRECTORY),
    "directory": Provider(_DIRECTORY),
    "env": Provider(_VARIABLE),
}


class Resolved(NamedTuple):
    """A text whose references are replaced. `files`: paths of the files that it is from."""

    text: str
    is_reference: bool
    files: tuple[str, ...]


def is_of_providers(name: str) -> bool:
    """True for settings that declare providers: they are for the references of their own source."""
    return name == PROVIDERS or name.startswith(f"{PROVIDERS}.")


class References:
    """The providers in force."""

    def __init__(
        self, declared: Mapping[str, str], read: Read, environment: Mapping[str, str]
    ) -> None:
        """`declared`: settings as of `is_of_providers`. `read` gives a file's text (OSError).

        Raises ConfigError.
        """
        self._read = read
        self._environment = environment
        self._providers = _declared(declared) if PROVIDERS in declared else _BUILT_IN
        if PROVIDERS not in declared and declared:
            name = next(iter(declared))
            raise ConfigError(name, f"{name}: {PROVIDERS} does not name this provider")

    def resolve(self, text: str) -> Resolved:
        """The text with values in place of references to known providers. ValueError."""
        if "${" not in text:
            return Resolved(text, False, ())
        files: list[str] = []
        found = False

        def value(match: re.Match[str]) -> str:
            nonlocal found
            provider = self._providers.get(match[1])
            if provider is None:
                return match[0]
            found = True
            return self._value(provider, match[0], match[2] or "", match[3], files)

        resolved = _REFERENCE.sub(value, text)
        return Resolved(resolved, found, tuple(files))

    def _value(
        self, provider: Provider, reference: str, path: str, key: str, files: list[str]
    ) -> str:
        if provider.kind == _VARIABLE:
            if provider.allowed and re.fullmatch(provider.allowed, key) is None:
                raise ValueError(f"{reference}: allowlist.pattern does not allow this variable")
            if key not in self._environment:
                raise ValueError(f"{reference}: there is no such environment variable")
            return self._environment[key]
        is_file = provider.kind == _FILE
        if not path or (not is_file and ("/" in key or key in ("", ".", ".."))):
            raise ValueError(f"{reference}: a path and a name with a colon between are needed")
        file = path if is_file else f"{path.rstrip('/')}/{key}"
        _check_path(provider, reference, file)
        files.append(file)
        text = self._text(reference, file)
        if not is_file:
            return text.rstrip("\r\n")
        values = {name: value for name, value, _ in _properties(reference, file, text)}
        if key not in values:
            raise ValueError(f"{reference}: {file} has no key of this name")
        return values[key]

    def _text(self, reference: str, file: str) -> str:
        try:
            return self._read(file)
        except OSError as error:
            raise ValueError(f"{reference}: {file} cannot be read: {error.strerror}") from error
        except ValueError:
            raise ValueError(f"{reference}: {file} is not text in UTF-8") from None


def _properties(reference: str, file: str, text: str) -> list[tuple[str, str, int]]:
    try:
        return list(read_properties(text))
    except ValueError as error:
        line = str(error).partition(":")[0]
        raise ValueError(f"{reference}: {file}, {line}, is no line of properties") from None


def _check_path(provider: Provider, reference: str, file: str) -> None:
    if provider.allowed and not any(
        ".." not in file.split("/") and f"{file}/".startswith(f"{each.strip().rstrip('/')}/")
        for each in provider.allowed.split(",")
    ):
        raise ValueError(f"{reference}: allowed.paths does not allow this file")


def _declared(declared: Mapping[str, str]) -> dict[str, Provider]:
    names = [each.strip() for each in declared[PROVIDERS].split(",") if each.strip()]
    found = {name: _provider(name, declared) for name in names}
    for key in declared:
        if key != PROVIDERS and key.removeprefix(f"{PROVIDERS}.").partition(".")[0] not in found:
            raise ConfigError(key, f"{key}: {PROVIDERS} does not name this provider")
    return found


def _provider(name: str, declared: Mapping[str, str]) -> Provider:
    of_class = f"{PROVIDERS}.{name}.class"
    kind = declared.get(of_class, "").strip().removeprefix(_PACKAGE)
    if kind not in _PARAMETERS:
        raise ConfigError(
            of_class,
            f"{of_class}: no class is loaded by its name; known are "
            f"{', '.join(_PACKAGE + each for each in _PARAMETERS)}",
        )
    of_parameter = f"{PROVIDERS}.{name}.param.{_PARAMETERS[kind]}"
    for key in declared:
        if key.startswith(f"{PROVIDERS}.{name}.") and key not in (of_class, of_parameter):
            raise ConfigError(key, f"{key}: a {kind} has no such parameter: {of_parameter}")
    allowed = declared.get(of_parameter, "").strip()
    if kind == _VARIABLE:
        try:
            re.compile(allowed)
        except re.error as error:
            raise ConfigError(of_parameter, f"{of_parameter}: {error}") from error
    return Provider(kind, allowed)
