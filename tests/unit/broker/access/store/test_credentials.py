"""Credentials of a profile, from the file of Amazon's tools."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from broker.access.store.credentials import FIRST, KEEP, profile_credentials
from broker.access.store.objects import open_store
from broker.access.store.refusals import BadStoreSetting
from tests.support.tier.canned_server import canned_server
from tests.support.tier.s3_server import only_aws

TEXT = """
[default]
aws_access_key_id = AKIDDEFAULT
aws_secret_access_key = planted%secret
[backup]
aws_access_key_id = AKIDBACKUP
aws_secret_access_key = other
aws_session_token = planted-token
[half]
aws_access_key_id = AKIDHALF
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "credentials"
    path.write_text(TEXT)
    return path


def of(file: Path, **more: str) -> dict[str, str]:
    return {"AWS_SHARED_CREDENTIALS_FILE": str(file), **more}


def test_a_profile_has_its_keys_for_a_while(file: Path) -> None:
    found = profile_credentials(of(file))
    assert found is not None
    keys = found()
    assert (keys["access_key_id"], keys["secret_access_key"]) == ("AKIDDEFAULT", "planted%secret")
    assert keys["token"] is None
    assert keys["expires_at"] is not None
    assert keys["expires_at"] - datetime.now(UTC) <= KEEP
    assert "planted" not in repr(found)


def test_a_profile_is_chosen_by_name_and_read_again(file: Path) -> None:
    found = profile_credentials(of(file, AWS_PROFILE="backup"))
    assert found is not None
    assert (found()["access_key_id"], found()["token"]) == ("AKIDBACKUP", "planted-token")
    file.write_text(TEXT.replace("AKIDBACKUP", "AKIDNEW"))
    assert found()["access_key_id"] == "AKIDNEW"


@pytest.mark.parametrize("name", FIRST)
def test_what_the_environment_says_itself_comes_first(file: Path, name: str) -> None:
    assert profile_credentials(of(file, **{name: "x"})) is None


def test_who_wants_no_signature_needs_no_profile(file: Path) -> None:
    assert profile_credentials(of(file, AWS_SKIP_SIGNATURE="true")) is None


def test_without_a_file_others_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert profile_credentials({}) is None
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(TEXT)
    found = profile_credentials({})
    assert found is not None
    assert found()["access_key_id"] == "AKIDDEFAULT"


@pytest.mark.parametrize(
    ("profile", "text", "reason"),
    [
        ("absent", TEXT, "profile absent is not there"),
        ("half", TEXT, "profile half has no aws_secret_access_key"),
        ("default", "[default\nplanted = 1", "cannot be read"),
        ("default", "planted", "cannot be read"),
        ("default", "", "profile default is not there"),
    ],
)
def test_a_profile_that_is_named_has_to_be_there(
    file: Path, profile: str, text: str, reason: str
) -> None:
    file.write_text(text)
    with pytest.raises(BadStoreSetting, match=reason) as refused:
        profile_credentials(of(file, AWS_PROFILE=profile))
    assert "planted" not in str(refused.value)


def test_a_file_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadStoreSetting, match="cannot be read"):
        profile_credentials(of(tmp_path / "absent"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(BadStoreSetting, match="cannot be read"):
        profile_credentials(of(tmp_path / "binary"))


def test_requests_are_signed_with_the_keys_of_the_profile(file: Path) -> None:
    with canned_server() as server:
        url = f"http://{server.address}"
        with only_aws(of(file, AWS_PROFILE="backup", AWS_ENDPOINT_URL=url)):
            store = open_store("s3://bucket/a")
        store.put_new("a", b"1")
        [seen] = server.seen
    assert "Credential=AKIDBACKUP/" in seen.headers["authorization"]
    assert seen.headers["x-amz-security-token"] == "planted-token"
