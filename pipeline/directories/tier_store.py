"""The object store of a tier, for those who read it: opened once in a process, never written.

Credentials, region and endpoint are the environment's, as the broker takes them. A question that
fails for the moment is asked again; a refusal, or an object that is not there, is an answer.
"""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

from config.tier.url import OptionalTierUrl
from pipeline.errors import BadOption
from storage.tier.port import ObjectMissing, ObjectStore, StoreDenied, StoreError

T = TypeVar("T")

TRIES = 4
FIRST_PAUSE_SECONDS = 0.2
"""Each pause is twice as long as the one before."""


class StorePlace(NamedTuple):
    """Place of a tier. Plain values: travels between processes, and has nothing secret."""

    url: str
    """`s3://bucket/prefix`, as in `horolog.tier.url`."""
    allows_http: bool = False
    """As `horolog.tier.allow.http`: without TLS beyond this machine, too."""

    def __str__(self) -> str:
        """For messages."""
        return self.url


def place_of(url: str, *, allows_http: bool = False) -> StorePlace:
    """The place that a user names. BadOption, which does not repeat what it refuses."""
    try:
        found = OptionalTierUrl().parse(url)
    except ValueError as error:
        raise BadOption(f"the URL of the tier: {error}") from None
    if found is None:
        raise BadOption("the URL of the tier is empty: write s3://bucket/prefix")
    return StorePlace(str(found), allows_http)


@lru_cache(16)
def store_at(place: StorePlace) -> ObjectStore:
    """The store; nothing is asked of it yet. BadOption where it cannot be used as it is set up."""
    from broker.access.store.objects import open_store
    from broker.access.store.refusals import TierRefused

    try:
        return open_store(place.url, allow_http=place.allows_http)
    except TierRefused as error:
        raise BadOption(f"{place}: {error}") from None


def patiently(ask: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """The answer, asked for `TRIES` times. StoreError, StoreDenied, ObjectMissing."""
    pause = FIRST_PAUSE_SECONDS
    for _ in range(TRIES - 1):
        try:
            return ask()
        except (StoreDenied, ObjectMissing):
            raise
        except StoreError:
            sleep(pause)
            pause *= 2
    return ask()
