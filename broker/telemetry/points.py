"""Points of metrics as clients push them, in the names and labels of Prometheus."""

import re
from typing import NamedTuple

COUNTER, GAUGE = "counter", "gauge"

PREFIX = "kafka_client_"
"""Of every name, so that no client can write a metric of the broker."""
KAFKAS_PREFIX = "org.apache.kafka."
"""Left out of names."""
MOST_CHARACTERS_OF_A_NAME = 200
MOST_LABELS = 16
"""Of a series, with the client's own two."""
MOST_CHARACTERS_OF_A_LABEL = 64
MOST_CHARACTERS_OF_A_VALUE = 128
CLIENT_ID, CLIENT_INSTANCE_ID = "client_id", "client_instance_id"

_OTHER_CHARACTERS = re.compile(r"[^a-zA-Z0-9]+")

Labels = tuple[tuple[str, str], ...]


class ClientName(NamedTuple):
    """The labels that every series of a client has."""

    client_id: str
    instance_id: str


class MetricPoint(NamedTuple):
    """One value of one series."""

    name: str
    source: str
    """Name that the client gave."""
    kind: str
    labels: Labels
    """In the order of their names."""
    value: float
    is_delta: bool
    """True for a change since the push before."""


class DroppedPoint(ValueError):  # noqa: N818 - the state it found
    """A point that cannot be shown; `reason` is one of a closed set of words (a metric label)."""

    def __init__(self, reason: str) -> None:
        """With the reason."""
        super().__init__(reason)
        self.reason = reason


def metric_name(source: str, kind: str) -> str:
    """The name in Prometheus' characters; counters end with `_total`. DroppedPoint."""
    if len(source) > MOST_CHARACTERS_OF_A_NAME:
        raise DroppedPoint("name")
    plain = _OTHER_CHARACTERS.sub("_", source.removeprefix(KAFKAS_PREFIX)).strip("_")
    if not plain:
        raise DroppedPoint("name")
    ending = "_total" if kind == COUNTER and not plain.endswith("_total") else ""
    return f"{PREFIX}{plain}{ending}"


def label_name(attribute: str) -> str:
    """The name of an attribute as a label; DroppedPoint for none and for one too long."""
    name = _OTHER_CHARACTERS.sub("_", attribute).strip("_")
    if not name or len(attribute) > MOST_CHARACTERS_OF_A_LABEL:
        raise DroppedPoint("labels")
    return f"label_{name}" if name[0].isdigit() else name


def labels_of(client: ClientName, attributes: dict[str, str]) -> Labels:
    """The labels of a series: attributes, and who pushes it. DroppedPoint for too many."""
    named = {
        **attributes,
        CLIENT_ID: client.client_id,
        CLIENT_INSTANCE_ID: client.instance_id,
    }
    if len(named) > MOST_LABELS:
        raise DroppedPoint("labels")
    return tuple(sorted(named.items()))
