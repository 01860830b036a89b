"""`horolog health`: its answer and status for every kind of reply; and how little it loads."""

import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from broker.cli.main import main
from broker.cli.probe import address_in_environment, ask

Answering = Callable[[bytes], str]


@pytest.fixture
def answering() -> Answering:
    """Gives the address of a server that answers the first request so, and closes."""

    def start(answer: bytes) -> str:
        listening = socket.create_server(("127.0.0.1", 0))

        def serve() -> None:
            with listening, listening.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return f"127.0.0.1:{listening.getsockname()[1]}"

    return start


def test_a_ready_broker(answering: Answering) -> None:
    assert ask(answering(b"HTTP/1.1 200 OK\r\n\r\nok\n")) == (0, "ready")


def test_a_broker_that_is_not_ready_says_why_in_one_line(answering: Answering) -> None:
    answer = b"HTTP/1.1 503 x\r\n\r\n[-]serving failed: recovering\nreadyz check failed\n"
    expected = "not ready: [-]serving failed: recovering; readyz check failed"
    assert ask(answering(answer)) == (1, expected)


@pytest.mark.parametrize("answer", [b"", b"\x15\x03\x01\x00\x02\x02", b"HTTP/1.1", b"220 smtp x y"])
def test_something_else_that_answers(answer: bytes, answering: Answering) -> None:
    address = answering(answer)
    expected = f"no broker answers at {address}: what answers there does not speak HTTP"
    status, text = ask(address)
    assert (status, text.startswith(expected), "https://" in text) == (1, True, True)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no-port", "127.0.0.1:99999", "[::1]:x"])
def test_nobody_there(address: str) -> None:
    status, text = ask(address)
    assert status == 1
    assert text.startswith(f"no broker answers at {address}: ")


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({}, "127.0.0.1:9404"),
        ({"HOROLOG_HTTP_LISTENER": "0.0.0.0:9000"}, "127.0.0.1:9000"),
        ({"HOROLOG_HTTP_LISTENER": ":9000"}, "127.0.0.1:9000"),
        ({"HOROLOG_HTTP_LISTENER": "[::]:9000"}, "127.0.0.1:9000"),
        ({"HOROLOG_HTTP_LISTENER": "[::1]:9000"}, "[::1]:9000"),
        ({"HOROLOG_HTTP_LISTENER": ":9000", "HOROLOG_HTTP": "there:80"}, "there:80"),
        ({"HOROLOG_HTTP": "https://there:80"}, "https://there:80"),
        (
            {"HOROLOG_HTTP_LISTENER": ":9000", "HOROLOG_HTTP_SECURITY_PROTOCOL": "SSL"},
            "https://127.0.0.1:9000",
        ),
    ],
)
def test_where_it_asks(
    variables: dict[str, str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOROLOG_HTTP", "HOROLOG_HTTP_LISTENER"):
        monkeypatch.delenv(name, raising=False)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    assert address_in_environment() == address


def test_the_command_takes_an_address(
    answering: Answering, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["health", "--http", answering(b"HTTP/1.0 200 OK\r\n\r\nok\n")]) == 0
    assert capsys.readouterr().out == "ready\n"


def test_a_check_loads_no_broker_no_loop_and_no_command_line() -> None:
    code = (
        "import sys; sys.argv = ['horolog', 'health']; from broker.__main__ import main; main(); "
        "print(*sorted(n for n in sys.modules if n.split('.')[0] in "
        "('asyncio', 'click', 'uvloop', 'http', 'config', 'storage', 'protocol', 'broker')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "broker broker.__main__ broker.cli broker.cli.probe"
