"""Commands that ask a running broker: what they say when there is none, or it refuses."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from broker.cli.main import main

NOW = {"ms": 0, "iso": "1970-01-01T00:00:00.000Z"}
CLOCK = {"wall": NOW, "steps_seen": 0, "hold": None, "test_clock": None, "monotonic_seconds": 1.0}


class Canned(HTTPServer):
    """Gives the same answers in turn and keeps what it was asked."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.asked: list[tuple[str, str, str | None]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Canned

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers["Authorization"]))
        status, body = self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Nothing."""


def ok(content: Any) -> tuple[int, bytes]:
    return 200, json.dumps(content).encode()


def refusal(status: int, code: str, message: str = "Because.") -> tuple[int, bytes]:
    return status, json.dumps({"error": {"code": code, "message": message}}).encode()


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Canned]:
    """A server that answers what the test puts into its `answers`."""
    for name in ("HOROLOG_HTTP_TOKEN", "HOROLOG_HTTP_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with Canned() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("HOROLOG_HTTP", f"127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on standard error; there is nothing on standard output."""
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    return output.err


def test_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        assert main(["segments", "events", "--http", address]) == 2
    line = complaint(capsys)
    assert line.startswith(f"horolog segments: no broker answers at {address} (Connection refused)")
    assert "--http HOST:PORT" in line


@pytest.mark.parametrize(
    "address",
    ["nonsense", "host:", "host:port", "host:99999", ":0", "broker..example:1", f"{'x' * 64}:1"],
)
def test_an_address_that_is_none(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock", "show", "--http", address]) == 2
    assert f"--http {address!r} is no HOST:PORT" in complaint(capsys)


def test_a_name_that_nobody_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock", "--http", "no-such-host.invalid:1"]) == 2
    assert "no broker answers at no-such-host.invalid:1" in complaint(capsys)


@pytest.mark.parametrize("first_words", [b"", b"\x00\x00\x00\x04abcd", b"SSH-2.0-x\r\n"])
def test_a_port_that_speaks_no_http(first_words: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """As the port for Kafka clients, which hangs up on what is no request."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(first_words)

        thread = threading.Thread(target=answer)
        thread.start()
        assert main(["clock", "--http", f"127.0.0.1:{listening.getsockname()[1]}"]) == 2
        thread.join()
    assert "does not speak HTTP" in complaint(capsys)


@pytest.mark.parametrize(
    "answer",
    [
        (200, b"<html>"),
        (404, b"{}"),
        (500, b"[1]"),
        (200, b""),
        (404, b'{"status": 404, "error": "Not Found", "path": "/api/clock"}'),
        (404, b'{"error": {"type": "index_not_found_exception", "reason": "no such index"}}'),
        (404, b'{"error": {"code": 404, "message": "Not found"}}'),
        (503, b'{"error": {"code": "away", "message": null}}'),
    ],
)
def test_another_server(
    canned: Canned, answer: tuple[int, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    canned.answers = [answer]
    assert main(["clock"]) == 2
    assert "is no Horolog" in complaint(capsys)


def test_a_topic_that_is_not_there_and_one_that_is_near(
    canned: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    canned.answers = [
        refusal(404, "unknown_topic"),
        ok({"topics": [{"topic": "orders"}, {"topic": "events"}], "next": None}),
    ]
    assert main(["segments", "evnts/?"]) == 1
    assert complaint(capsys).endswith("has no topic 'evnts/?': did you mean events?\n")
    assert canned.asked[0][1].startswith("/api/topics/evnts%2F%3F/segments")


def test_a_token_goes_along_and_its_absence_is_explained(
    canned: Canned, tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    canned.answers = [refusal(401, "token"), ok(CLOCK), ok(CLOCK)]
    assert main(["clock", "freeze"]) == 1
    assert "--token-file FILE or HOROLOG_HTTP_TOKEN" in complaint(capsys)
    secret = tmp_path / "token"
    secret.write_text("correct horse\n")
    assert main(["clock", "freeze", "--token-file", str(secret)]) == 0
    monkeypatch.setenv("HOROLOG_HTTP_TOKEN", "battery")
    assert main(["clock", "freeze"]) == 0
    assert [each[2] for each in canned.asked] == [None, "Bearer correct horse", "Bearer battery"]


@pytest.mark.parametrize("address", ["broker..example:9092", f"{'x' * 64}:9092"])
def test_a_listener_that_has_no_name(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acls", "list", "--bootstrap", address]) == 2
    assert f"--bootstrap {address!r} is no HOST:PORT" in complaint(capsys)


def test_a_token_of_a_variable_is_that_of_its_file(
    canned: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    canned.answers = [ok(CLOCK)]
    monkeypatch.setenv("HOROLOG_HTTP_TOKEN", "battery\n")
    assert main(["clock", "freeze"]) == 0
    assert canned.asked[0][2] == "Bearer battery"


@pytest.mark.parametrize("token", ["correct\nhorse", "\u2026battery", "batt\x07ery"])
def test_a_token_that_is_none_is_not_shown(
    token: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOROLOG_HTTP_TOKEN", token)
    assert main(["clock", "freeze"]) == 1
    line = complaint(capsys)
    assert "HOROLOG_HTTP_TOKEN" in line
    assert not {"horse", "batt"} & set(line.split())


def test_a_share_group_is_found_however_many_there_are(
    canned: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists of groups come a page at a time."""
    group = {
        "group": "workers", "state": "Stable", "type": "share", "since": None, "generation": 1,
        "members": 1, "lag_records": 0, "member_states": [], "partitions": [],
    }  # fmt: skip
    queue = {"group": "workers", "sessions": 1, "behind": 7, "partitions": []}
    canned.answers = [ok(group), ok(queue)]
    assert main(["groups", "workers"]) == 0
    assert "7 records behind" in capsys.readouterr().out
    assert canned.asked[1][1] == "/api/share-groups/workers"
    canned.answers = [ok(group), refusal(404, "unknown_group")]
    assert main(["groups", "workers"]) == 0
    assert "0 records behind" in capsys.readouterr().out, "it has read nothing yet"
    canned.answers = [ok(group), refusal(503, "storage_error")]
    assert main(["groups", "workers"]) == 2


def test_segments_are_shown_to_who_may_not_see_the_settings_of_their_topic(
    canned: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    """The right DESCRIBE shows them; limits need DESCRIBE_CONFIGS, too."""
    state = {
        "partition": 0, "log_start_offset": 0, "log_end_offset": 3, "size_bytes": 90,
        "segment_count": 1, "leaving_count": 0, "blocker": None, "roll": {"size_bytes": 0},
        "segments": [],
    }  # fmt: skip
    answer = {"topic": "t", "now": NOW, "hold": None, "settings": {}, "next": None}
    canned.answers = [ok({**answer, "partitions": [state]})]
    assert main(["segments", "t"]) == 0
    text = capsys.readouterr().out
    assert "t-0: offsets 0 to 2, 90 B in 1 segment; its limits" in text
    assert "DESCRIBE_CONFIGS" in text


def test_a_token_file_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clock", "freeze", "--token-file", "/nowhere/token"]) == 1
    assert "--token-file /nowhere/token: " in complaint(capsys)


def test_what_the_broker_says_of_a_mistake_is_handed_on(
    canned: Canned, capsys: pytest.CaptureFixture[str]
) -> None:
    canned.answers = [refusal(400, "bad_setting", "retention.mss is not a known setting")]
    assert main(["retention", "preview", "t", "--set", "retention.mss=1h"]) == 1
    assert complaint(capsys) == (
        "horolog retention preview: retention.mss is not a known setting\n"
    )


def test_a_broker_that_is_not_ready(canned: Canned, capsys: pytest.CaptureFixture[str]) -> None:
    canned.answers = [refusal(503, "not_ready", "The broker is loading")]
    assert main(["segments", "t"]) == 2
    assert "The broker is loading" in complaint(capsys)


def test_a_question_whose_answer_is_still_read_is_asked_again(canned: Canned) -> None:
    canned.answers = [refusal(503, "still_reading"), refusal(503, "still_reading"), ok(CLOCK)]
    assert main(["clock", "--json"]) == 0
    assert len(canned.asked) == 3


@pytest.mark.parametrize("text", ["retention.ms", "=1", "a=1 --set a=2"])
def test_settings_are_key_and_value(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retention", "preview", "t", "--set", *text.split()]) == 2
    assert "write KEY=VALUE" in complaint(capsys)


def test_a_partition_is_no_setting(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["retention", "preview", "t", "--set", "partition=0"]) == 2
    assert "write --partition N" in complaint(capsys)


@pytest.mark.parametrize("key", ["topic", "path", "self"])
def test_what_is_no_setting_is_for_the_broker_to_refuse(
    canned: Canned, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    canned.answers = [refusal(400, "bad_setting", f"{key} is not a known setting")]
    assert main(["retention", "preview", "t", "--set", f"{key}=1"]) == 1
    assert "is not a known setting" in complaint(capsys)


def test_times_before_now_are_no_options(canned: Canned) -> None:
    canned.answers = [refusal(400, "bad_parameter")] * 3
    main(["time", "range", "t", "-3h", "-2h", "--clock", "arrival"])
    main(["time", "lookup", "t", "-1h"])
    main(["clock", "step", "-1h", "--clock", "wall"])
    asked = [path.partition("?")[2] for _, path, _ in canned.asked]
    assert asked == [
        "clock=arrival&from=-3h&to=-2h",
        "timestamp=-1h&clock=record",
        "by=-1h&clock=wall",
    ]
