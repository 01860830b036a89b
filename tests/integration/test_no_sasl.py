"""A client that is set up for SASL hears that this listener has none."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from broker.runtime.event_log import journal
from protocol.apis.sasl_handshake import SaslHandshakeRequest
from tests.support.worlds.app import client_of, running_broker
from tests.support.worlds.broker_process import start_broker


@pytest.mark.parametrize("version", [0, 1])
async def test_a_handshake_is_answered_as_by_a_kafka_without_sasl(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(journal, "write", lines.append)
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        answer = await client.call(SaslHandshakeRequest(mechanism="PLAIN"), version)
        assert (answer.error_code, answer.mechanisms) == (34, [])
        assert broker.services.probes.errors[17, 34] == 1
    (line,) = [each for each in lines if "no_sasl_here" in each]
    assert "mechanism=PLAIN" in line
    assert "listener=PLAINTEXT" in line


def test_a_client_names_what_is_wrong(tmp_path: Path) -> None:
    heard: list[str] = []
    with start_broker(tmp_path / "data") as node:
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "u",
                "sasl.password": "p",
                "error_cb": lambda error: heard.append(error.str()),
            }
        )
        for _ in range(100):
            producer.poll(0.1)
            if heard:
                break
        log = node.log.read_text()
    assert any("SASL" in each for each in heard), heard
    assert "no_sasl_here" in log
    assert "is not served" not in log
