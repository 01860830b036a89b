"""Refusals of the settings: which key, which value, why, and what was probably meant.

The broker answers `ConfigError` on the wire with INVALID_CONFIG (40) and `ConfigRequestError` with
INVALID_REQUEST (42); at start either one ends the process with exit status 1.
"""


class ConfigError(ValueError):
    """A setting that cannot be accepted. `key` is its name as given, `message` a sentence."""

    def __init__(self, key: str, message: str, *, where: str = "") -> None:
        """`where` is the place it was written (file and line, variable, flag), when known."""
        super().__init__(f"{where}: {message}" if where else message)
        self.key = key
        self.message = message
        self.where = where

    def at(self, where: str) -> "ConfigError":
        """The same refusal, saying where the setting was written."""
        return type(self)(self.key, self.message, where=where)


class NotServedError(ConfigError):
    """A setting that Kafka knows and this version does not serve: it is never set."""


class ConfigRequestError(ConfigError):
    """A request to change settings that is malformed whatever the key: a null, a key twice."""


class SeveralConfigError(ConfigError):
    """Several refusals at once, so that one start names every mistake in a file."""

    def __init__(self, errors: list[ConfigError]) -> None:
        """At least one; the text is one line for each."""
        super().__init__(errors[0].key, "\n".join(str(error) for error in errors))
        self.errors = errors

    def at(self, where: str) -> ConfigError:  # noqa: ARG002 - each of them has its own place
        """Itself: each refusal names its own place."""
        return self
