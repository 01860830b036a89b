"""What people get wrong at a first start: one line that ends with the remedy, and the status."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from broker.daemon import serve as serving
from broker.runtime.exit_status import BAD_SETTINGS, NOT_USABLE, WRONG_CLOCK
from storage.posix import PosixFileSystem, real_env
from storage.tier.object_cache import ObjectCache
from tests.support.disk.simenv import SimClock
from tests.support.worlds.broker_process import HOROLOG

SECONDS_TO_REFUSE = 10


def refused(data_dir: Path | str, *settings: str) -> tuple[int, str]:
    """The status, and the one line on standard error."""
    ports = ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    done = subprocess.run(
        [str(HOROLOG), "serve", "--data-dir", str(data_dir), *ports]
        + [word for each in settings for word in ("--set", each)],
        capture_output=True,
        text=True,
        timeout=SECONDS_TO_REFUSE,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    return done.returncode, line


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("log.retention.hour=1", "did you mean log.retention.hours?"),
        ("retention.msec=1", "did you mean"),
        ("log.retention.ms=7weeks", "use ms, s, m, min, h, d"),
        ("log.segment.bytes=1parsec", "use b, kib, mib, gib, tib, kb, mb, gb, tb"),
        ("advertised.listeners=PLAINTEXT://0.0.0.0:9092", "name the host that clients use"),
        ("advertised.listeners=PLAINTEXT://[::]:9092", "name the host that clients use"),
        ("ssl.keystore.type=JKS", "keytool -importkeystore"),
        ("horolog.http.token.file=/no/such/token", "put the tokens there"),
    ],
)
def test_a_wrong_setting_is_told_with_its_remedy(tmp_path: Path, setting: str, remedy: str) -> None:
    status, line = refused(tmp_path / "data", setting)
    assert status == BAD_SETTINGS
    assert setting.partition("=")[0] in line
    assert remedy in line


TIER = ("remote.log.storage.system.enable=true", "horolog.tier.url=s3://bucket/prefix")


def test_a_place_that_cannot_have_the_cache_of_the_tier_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    (tmp_path / "file").touch()
    cache = f"horolog.tier.cache.dir={tmp_path}/file/cache"
    status, line = refused(tmp_path / "data", *TIER, cache)
    assert status == BAD_SETTINGS
    assert f"{tmp_path}/file/cache: " in line
    assert line.endswith("that the broker may make and empty (horolog.tier.cache.dir)")


def test_a_cache_of_the_tier_that_another_broker_uses_is_refused_and_its_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    other = ObjectCache(PosixFileSystem(), str(tmp_path / "cache"), 1 << 20)
    other.open()
    kept = other.make("an object", 100).path
    status, line = refused(tmp_path / "data", *TIER, f"horolog.tier.cache.dir={tmp_path}/cache")
    assert status == BAD_SETTINGS
    assert "another broker has its cache there" in line
    assert line.endswith("give each a directory of its own (horolog.tier.cache.dir)")
    assert Path(kept).exists()
    other.close()


@pytest.mark.parametrize("place", ["data", ""], ids=["data directory", "directory above it"])
def test_a_cache_of_the_tier_in_a_place_with_other_files_is_refused_and_they_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    segment = tmp_path / "data" / "orders-0" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    segment.touch()
    cache = f"horolog.tier.cache.dir={tmp_path / place}"
    status, line = refused(tmp_path / "data", *TIER, cache)
    assert segment.exists()
    assert status == BAD_SETTINGS
    assert "which is no cache's" in line
    assert line.endswith("that the broker may make and empty (horolog.tier.cache.dir)")


@pytest.mark.parametrize(
    ("endpoint", "remedy"),
    [
        ("http://192.0.2.7:9000", "horolog.tier.allow.http=true"),
        ("https://key:secret@192.0.2.7", "AWS_ENDPOINT_URL"),
    ],
)
def test_a_store_that_may_not_be_used_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, remedy: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    status, line = refused(tmp_path / "data", *TIER)
    assert status == BAD_SETTINGS
    assert remedy in line
    assert "secret" not in line


@pytest.mark.parametrize("data_dir", ["/proc/horolog/data", "/sys/horolog"])
def test_a_directory_that_cannot_be_made_is_told(data_dir: str) -> None:
    status, line = refused(data_dir)
    assert status == NOT_USABLE
    assert "make directory failed" in line


def test_a_clock_in_1970_ends_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serving, "configure", lambda **_: None)
    monkeypatch.setattr(serving, "real_env", lambda: replace(real_env(), clock=SimClock(1000)))
    status = serving.serve(
        flags=[], file=None, log_level="error", log_as_json=False, loop_factory=None
    )
    assert status == WRONG_CLOCK
    (line,) = capsys.readouterr().err.splitlines()
    assert "the clock of this machine says 1970-01-01" in line
    assert line.endswith("set it (NTP does that), then start again")
