"""Compares what two brokers said of one history: Kafka's words and ours.

`DELIBERATE` is the whole list of what may differ; `docs/differences.md` gives the reasons.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.histories.history_life import Life

REFUSAL = "a refusal says the log start offset"
SEARCH = "a search goes on in later segments"
DELIBERATE = (REFUSAL, SEARCH)


class Difference(NamedTuple):
    """One thing that was said differently; `allowed` names the deliberate difference it is."""

    label: str
    kafka: Any
    ours: Any
    allowed: str = ""


def differences(kafka: Life, ours: Life) -> Iterator[Difference]:
    """All of them, the deliberate ones too."""
    for label in (*kafka.told, *(each for each in ours.told if each not in kafka.told)):
        theirs, own = kafka.told.get(label), ours.told.get(label)
        if theirs != own:
            yield Difference(label, theirs, own, _why_allowed(label, kafka, ours))
    for label, lookup in ours.lookups.items():
        if ours.told[label][:3] != lookup.by_model:
            yield Difference(f"{label} against a plain list", lookup.by_model, ours.told[label])


def _why_allowed(label: str, kafka: Life, ours: Life) -> str:
    theirs, own = kafka.told.get(label), ours.told.get(label)
    if theirs is None or own is None:
        return ""
    if "produce" in label and theirs["error"] and theirs["start"] == -1:
        return REFUSAL if {**theirs, "start": own["start"]} == own else ""
    if label in kafka.lookups and label in ours.lookups:
        lookup = kafka.lookups[label]
        return SEARCH if theirs[:3] == lookup.by_kafka and own[:3] == lookup.by_model else ""
    return ""
