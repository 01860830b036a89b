"""Errors of getting into a broker. No text has a secret."""

# ruff: noqa: N818 - an error is named after what happened


class AccessError(Exception):
    """Anything that keeps a client out."""


class BadSetting(AccessError):
    """A setting of the client is wrong, is not taken here, or names a file that cannot be used."""


class LoginRefused(AccessError):
    """The broker or the provider of tokens refused the user."""


class BrokerNotProven(AccessError):
    """The broker is not who it should be, or does not know the password either."""
