"""A broker that was killed again and again: it serves readers, refuses records, and says so."""

from pathlib import Path

from protocol.errors import ErrorCode as Code
from tests.support.clients.admin import Admin
from tests.support.worlds.watched_broker import WatchedBroker, fetch_from, produce_to, small_batch


def test_after_some_crashes_it_takes_no_records_until_somebody_looked(tmp_path: Path) -> None:
    data, token = tmp_path / "data", tmp_path / "token"
    token.write_text("secret-of-the-operator")
    token.chmod(0o600)
    settings = {"horolog.crash.loop.starts": "2", "horolog.http.token.file": str(token)}
    broker = WatchedBroker(data, settings)
    broker.make_topic("t")
    with broker.client() as client:
        assert produce_to(client, small_batch()).error_code == 0
    broker.process.kill()
    broker = WatchedBroker(data, settings)
    with broker.client() as client:
        assert produce_to(client, small_batch()).error_code == 0
    broker.process.kill()
    with WatchedBroker(data, settings) as broker, broker.client() as client:
        api = Admin(broker.process.facts["http"])
        refused = produce_to(client, small_batch())
        assert refused.error_code == Code.KAFKA_STORAGE_ERROR
        assert "/api/starts/confirm" in (refused.error_message or "")
        assert fetch_from(client).responses[0].partitions[0].high_watermark == 2
        assert api.ask("GET", "/readyz").status == 503
        assert "event=crash_loop " in broker.log_text
        assert api.get("/api/starts")["recent_starts"] == 2
        by_operator = {"Authorization": "Bearer secret-of-the-operator"}
        assert api.ask("POST", "/api/starts/confirm", by_operator).content["hold_ended"]
        assert produce_to(client, small_batch()).error_code == 0
        assert api.ask("GET", "/readyz").status == 200
        broker.check_unharmed()
    with WatchedBroker(data, settings) as broker, broker.client() as client:
        assert produce_to(client, small_batch()).error_code == 0, "it was stopped well before"
