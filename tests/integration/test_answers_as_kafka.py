"""A broker without authorizer answers each request as Kafka 4.3 answers a super user.

The requests and Kafka's answers are those of the recorded table; what differs is listed with its
reason. Authorized operations are left out: the table's are those of an authorizer.
"""

import json
from pathlib import Path
from typing import Any

from tests.support.authorization import scene, table
from tests.support.authorization.survey import Cell, Survey
from tests.support.authorization.told import Shape
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker

TIMEOUT_SECONDS = 10
DIFFERENT = {
    ("Fetch", "replica"): "there are no followers",
    ("Produce", "null transaction"): "the refusal has a text",
}
NOT_HERE = {
    "DescribeAcls", "CreateAcls", "DeleteAcls",
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken",
    "DescribeDelegationToken",
}  # fmt: skip
"""APIs that take an authorizer, or a listener with SASL."""


def test_each_request_is_answered_as_by_kafka(tmp_path: Path) -> None:
    recorded = {
        cell: shape
        for cell, shape in table.load().items()
        if cell.principal == scene.SUPER and cell.api not in NOT_HERE
    }
    with start_broker(tmp_path / "data", {"auto.create.topics.enable": "false"}) as node:
        told = answers(node.bootstrap, table.versions_of(recorded))
    wrong = [
        f"{cell}: Kafka {recorded[cell]}, ours {told[cell]}"
        for cell in sorted(recorded.keys() & told.keys())
        if without_operations(recorded[cell]) != without_operations(told[cell])
        and (cell.api, cell.aim) not in DIFFERENT
    ]
    assert wrong == []
    assert len(recorded.keys() & told.keys()) > 850


def answers(bootstrap: str, wanted: dict[str, list[int]]) -> dict[Cell, Shape]:
    """The answers to the super user, in the versions that both brokers have."""
    host, port = bootstrap.split(":")
    survey = Survey(
        lambda _: WireClient(host, int(port), timeout_seconds=TIMEOUT_SECONDS), [scene.SUPER]
    )
    try:
        survey.prepare()
        ours = survey.versions()
        both = {
            api: [version for version in versions if version in ours.get(api, ())]
            for api, versions in wanted.items()
        }
        return dict(survey.answers(both))
    finally:
        survey.close()


def without_operations(shape: Shape) -> Any:
    """The shape without what depends on an authorizer, in one order."""
    return json.loads(
        json.dumps(shape, sort_keys=True),
        object_hook=lambda each: {
            name: value for name, value in each.items() if not name.endswith("_operations")
        },
    )
