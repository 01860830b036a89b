"""Proof that a store refuses to make an object where there is one of its name.

Manifests and the card of a tier rest on it: of two writers one has to lose.
"""

from broker.access.store.refusals import CreateOnlyIgnored
from storage.tier.port import ObjectExists, ObjectStore


def prove_create_only(store: ObjectStore, unique_key: str) -> None:
    """Puts one name twice. CreateOnlyIgnored where the second one succeeds; StoreError.

    `unique_key` was never used before. The object is removed again.
    """
    store.put_new(unique_key, b"first")
    try:
        _put_second(store, unique_key)
    finally:
        store.delete([unique_key])


def _put_second(store: ObjectStore, key: str) -> None:
    try:
        store.put_new(key, b"second")
    except ObjectExists:
        return
    raise CreateOnlyIgnored(
        "the store makes an object twice (it ignores If-None-Match): two brokers would write "
        "one tier without noticing"
    )
