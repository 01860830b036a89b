"""A certificate is renewed under load: nothing is lost, and a wrong one leaves the old one."""

import os
import signal
import socket
import ssl
import threading
from pathlib import Path

from confluent_kafka import Producer

from tests.support.clients.certificates import Authority, Signed
from tests.support.worlds.broker_process import start_broker


def shown(address: str, authority: str) -> bytes:
    """The certificate of the broker, in DER, of a new connection that trusts it."""
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context(cadata=authority)
    with (
        socket.create_connection((host, int(port)), timeout=20) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as link,
    ):
        found = link.getpeercert(binary_form=True)
    assert found is not None
    return found


def test_a_renewed_certificate_counts_without_a_lost_record_and_a_wrong_one_does_not(
    tmp_path: Path,
) -> None:
    authority = Authority()
    first, second = authority.server(), authority.server()
    file, log = first.write(tmp_path / "server.pem"), tmp_path / "log"
    settings = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(file)}
    with start_broker(tmp_path / "data", settings, log=log) as node:

        def hang_up_until(event: str, times: int) -> str:
            os.kill(node.pid, signal.SIGHUP)
            pause = threading.Event()
            for _ in range(400):
                text = log.read_text()
                if text.count(f"event={event} ") == times:
                    return text
                pause.wait(0.05)
            raise AssertionError(text)

        def der(signed: Signed) -> bytes:
            return ssl.PEM_cert_to_DER_cert(signed.certificate_pem)

        failed: list[object] = []
        producer = Producer(
            {
                "bootstrap.servers": node.bootstrap,
                "security.protocol": "ssl",
                "ssl.ca.location": str(authority.write(tmp_path / "authority.pem")),
                "retries": 0,
            }
        )

        def produce(count: int) -> None:
            for n in range(count):
                producer.produce(
                    "renewal", f"{n}", on_delivery=lambda error, _: error and failed.append(error)
                )
            assert producer.flush(60) == 0

        produce(1000)
        assert shown(node.bootstrap, authority.pem) == der(first)
        second.write(file)
        hang_up_until("certificate_renewed", 1)
        assert shown(node.bootstrap, authority.pem) == der(second)
        produce(1000)
        for count, (text, reason) in enumerate(
            [
                (first.key_pem() + second.certificate_pem, "does not fit"),
                (second.key_pem(), "no certificate"),
                (authority.own.key_pem() + authority.pem, "ssl.allow.dn.changes"),
            ],
            1,
        ):
            file.write_text(text)
            assert reason in hang_up_until("certificate_not_renewed", count)
            assert shown(node.bootstrap, authority.pem) == der(second)
        produce(1000)
        assert failed == []
