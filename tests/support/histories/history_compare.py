"""Compares what two brokers said of one history: Kafka's words and ours.

`DELIBERATE` is the whole list of what may differ; `docs/differences.md` gives the reasons.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from tests.support.histories.history_life import Life

K = TypeVar("K")

REFUSAL = "a refusal says the log start offset"
SEARCH = "a search goes on in later segments"
DELIBERATE = (REFUSAL, SEARCH)


class Difference(NamedTuple):
    """One thing that was said differently; `allowed` names the deliberate difference it is."""

    label: Any
    kafka: Any
    ours: Any
    allowed: str = ""


def told_apart(
    kafka: Mapping[K, Any], ours: Mapping[K, Any], why_allowed: Callable[[K], str]
) -> Iterator[Difference]:
    """Answers that differ, by label. `why_allowed` names the deliberate difference, or none."""
    for label in (*kafka, *(each for each in ours if each not in kafka)):
        theirs, own = kafka.get(label), ours.get(label)
        if theirs != own:
            yield Difference(label, theirs, own, why_allowed(label))


def differences(kafka: Life, ours: Life) -> Iterator[Difference]:
    """All of them, the deliberate ones too."""
    yield from told_apart(kafka.told, ours.told, lambda label: _why_allowed(label, kafka, ours))
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
