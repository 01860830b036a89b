"""Errors of a tier that cannot be used as it is set up. No text has a secret."""

# ruff: noqa: N818 - an error is named after what happened


class TierRefused(Exception):
    """The tier cannot be used as it is set up. Trying again does not help."""


class BadStoreUrl(TierRefused):
    """The URL of the tier names no place in a store, or has what does not belong there."""


class PlainHttpRefused(TierRefused):
    """The store's endpoint is reached without TLS, beyond this machine."""


class BadStoreSetting(TierRefused):
    """A variable of the environment, or a file that one names, cannot be used."""


class StoreLibraryMissing(TierRefused):
    """The library that reaches object stores is not installed."""


class CreateOnlyIgnored(TierRefused):
    """The store makes an object where there is one of its name: two writers would not notice."""
