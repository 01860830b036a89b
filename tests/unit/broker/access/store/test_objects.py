"""Requests to an S3 store, and its answers as errors of the port."""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from broker.access.store.objects import S3Objects, StoreLimits, open_store
from broker.access.store.refusals import (
    BadStoreSetting,
    BadStoreUrl,
    PlainHttpRefused,
    StoreLibraryMissing,
)
from config.tier.url import TierUrl
from storage.tier.port import (
    ObjectExists,
    ObjectMissing,
    ObjectStore,
    StoreAway,
    StoreDenied,
    StoreError,
    StoreThrottled,
    StoreTimedOut,
)
from tests.support.tier.canned_server import Canned, canned_server
from tests.support.tier.s3_server import only_aws

MIB = 1024 * 1024
SECRETS = ("AKIDPLANTED", "planted-secret", "planted-token")
QUICK = StoreLimits(
    connect_seconds=0.5, request_seconds=0.5, part_bytes=5 * MIB, parts_at_once=2
)  # fmt: skip
Call = Callable[[ObjectStore], object]
CALLS: dict[str, Call] = {
    "put_new": lambda store: store.put_new("a/b", b"1"),
    "put_file": lambda store: store.put_file("a/b", iter([b"1"]), 1),
    "get": lambda store: store.get("a/b"),
    "get_range": lambda store: store.get_range("a/b", 3, 5),
    "pieces": lambda store: list(store.pieces("a/b", 3, 5)),
    "list": lambda store: list(store.list("a/")),
    "delete": lambda store: store.delete(["a/b", "a/c"]),
}
every_call = pytest.mark.parametrize("operation", CALLS)


@pytest.fixture
def server() -> Iterator[Canned]:
    with canned_server() as canned:
        yield canned


@pytest.fixture
def store(server: Canned) -> ObjectStore:
    return opened(server)


def opened(server: Canned, url: str = "s3://bucket/pre/fix", **more: str) -> ObjectStore:
    with only_aws({**variables(server), **more}):
        return open_store(url, limits=QUICK)


def variables(server: Canned) -> dict[str, str]:
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    keys = dict(zip(names, SECRETS, strict=True))
    return {**keys, "AWS_ENDPOINT_URL": f"http://{server.address}", "AWS_REGION": "eu-west-1"}


def failure(store: ObjectStore, operation: str) -> StoreError:
    with pytest.raises(StoreError) as failed:
        CALLS[operation](store)
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None
    return failed.value


def xml(code: str) -> bytes:
    """An error as Amazon has it: what was sent comes back in it."""
    return (
        f"<Error><Code>{code}</Code><Message>no</Message><AWSAccessKeyId>{SECRETS[0]}"
        f"</AWSAccessKeyId><StringToSign>x-amz-security-token:{SECRETS[2]}</StringToSign></Error>"
    ).encode()


def test_a_new_object_is_one_request_that_refuses_an_old_one(
    server: Canned, store: ObjectStore
) -> None:
    store.put_new("a/b", bytes(20 * MIB))
    [seen] = server.seen
    assert (seen.method, seen.path) == ("PUT", "/bucket/pre/fix/a/b")
    assert seen.headers["if-none-match"] == "*"
    assert len(seen.body) == 20 * MIB


def test_a_range_is_one_request(server: Canned, store: ObjectStore) -> None:
    server.say(206, b"34567", **{"Content-Range": "bytes 3-7/10"})
    assert store.get_range("a/b", 3, 5) == b"34567"
    [seen] = server.seen
    assert seen.headers["range"] == "bytes=3-7"


@pytest.mark.parametrize("url", ["s3://bucket", "s3://bucket/"])
def test_a_place_may_be_the_whole_bucket(server: Canned, url: str) -> None:
    opened(server, url).put_new("a/b", b"")
    assert server.seen[0].path == "/bucket/a/b"


@every_call
@pytest.mark.parametrize(
    "refusal",
    [
        (400, "ExpiredToken", StoreDenied),
        (400, "InvalidRequest", StoreError),
        (401, "Unauthorized", StoreDenied),
        (403, "AccessDenied", StoreDenied),
        (403, "SignatureDoesNotMatch", StoreDenied),
        (404, "NoSuchBucket", StoreDenied),
        (409, "ConditionalRequestConflict", StoreError),
        (429, "TooManyRequests", StoreThrottled),
        (500, "InternalError", StoreError),
        (503, "SlowDown", StoreThrottled),
        (503, "ServiceUnavailable", StoreError),
    ],
)
def test_a_refusal_is_an_error_with_key_and_code_and_no_second_request(
    server: Canned, store: ObjectStore, operation: str, refusal: tuple[int, str, type]
) -> None:
    status, code, kind = refusal
    server.say(status, xml(code))
    error = failure(store, operation)
    assert type(error) is kind
    assert error.path.startswith("a/")
    assert error.message.endswith(f" failed: status {status} {code}")
    assert not any(secret in str(error) for secret in SECRETS)
    assert len(server.seen) == 1


@pytest.mark.parametrize("operation", ["get", "get_range", "pieces"])
def test_an_object_is_missing_when_the_store_says_so(
    server: Canned, store: ObjectStore, operation: str
) -> None:
    server.say(404, xml("NoSuchKey"))
    assert type(failure(store, operation)) is ObjectMissing


@every_call
def test_a_proxy_that_finds_nothing_says_nothing_about_objects(
    server: Canned, store: ObjectStore, operation: str
) -> None:
    server.say(404, b"<html>Not Found</html>")
    assert type(failure(store, operation)) is StoreError


def test_a_put_that_the_store_refuses_by_its_condition_finds_an_object(
    server: Canned, store: ObjectStore
) -> None:
    server.say(412, b"")
    assert type(failure(store, "put_new")) is ObjectExists


@pytest.mark.parametrize("operation", ["get_range", "pieces", "list", "delete"])
def test_an_answer_that_is_not_of_s3_is_a_failure(
    server: Canned, store: ObjectStore, operation: str
) -> None:
    server.say(200, b"welcome to this network")
    assert failure(store, operation).message.endswith("its answer is not one of S3")


def test_a_range_behind_the_end_is_empty(server: Canned, store: ObjectStore) -> None:
    server.say(416, xml("InvalidRange"))
    assert store.get_range("a/b", 3, 5) == b""


def test_pieces_behind_the_end_are_none(server: Canned, store: ObjectStore) -> None:
    server.say(416, xml("InvalidRange"))
    assert list(store.pieces("a/b", 3, 5)) == []


def test_pieces_of_a_range_are_one_request(server: Canned, store: ObjectStore) -> None:
    content = random.Random(0).randbytes(8 * MIB)
    server.say(206, content, **{"Content-Range": f"bytes 3-{8 * MIB + 2}/{9 * MIB}"})
    pieces = [bytes(each) for each in store.pieces("a/b", 3, 8 * MIB)]
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) <= 2 * MIB, "not all of it at a time"
    [seen] = server.seen
    assert seen.headers["range"] == f"bytes=3-{8 * MIB + 2}"


def test_pieces_that_are_cut_off_end_in_a_failure(server: Canned, store: ObjectStore) -> None:
    server.say(206, bytes(MIB), **{"Content-Range": f"bytes 0-{2 * MIB - 1}/{2 * MIB}"})
    server.says_bytes = 2 * MIB
    with pytest.raises(StoreAway, match="the connection ended before the answer did"):
        list(store.pieces("a/b", 0, 2 * MIB))


def test_an_answer_that_is_cut_is_a_failure(server: Canned, store: ObjectStore) -> None:
    server.say(200, b"half")
    server.says_bytes = 8
    error = failure(store, "get")
    assert type(error) is StoreAway
    assert error.message.endswith("the connection ended before the answer did")


@every_call
def test_a_store_that_is_not_there_is_away(operation: str) -> None:
    with canned_server() as gone:
        store = opened(gone)
    error = failure(store, operation)
    assert type(error) is StoreAway
    assert error.message.endswith("it cannot be reached")


def test_an_object_that_is_too_large_is_not_read_whole(server: Canned, store: ObjectStore) -> None:
    server.say(200, b"the first of many")
    server.says_bytes = 256 * MIB + 1
    assert failure(store, "get").message.endswith("it has 268435457 bytes")


def test_one_of_many_that_is_not_removed_is_a_failure(server: Canned, store: ObjectStore) -> None:
    rows = "<Error><Key>pre/fix/a/b</Key><Code>AccessDenied</Code><Message>m</Message></Error>"
    server.say(200, f"<DeleteResult>{rows}</DeleteResult>".encode())
    error = failure(store, "delete")
    assert type(error) is StoreDenied
    assert error.message.endswith("AccessDenied")


@every_call
def test_a_store_that_does_not_answer_is_given_up(
    server: Canned, store: ObjectStore, operation: str
) -> None:
    server.answers_never = True
    error = failure(store, operation)
    assert type(error) is StoreTimedOut
    assert error.message.endswith("it did not answer in time")


def test_few_parts_of_a_file_are_in_memory(server: Canned, store: ObjectStore) -> None:
    taken = 0

    def parts() -> Iterator[bytes]:
        nonlocal taken
        for _ in range(400):
            taken += 1
            yield bytes(MIB)

    server.say(200, b"<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                    b"</InitiateMultipartUploadResult>")  # fmt: skip
    with pytest.raises(StoreError):
        store.put_file("a/b", slowed(server, parts()), 400 * MIB)
    assert 5 <= taken <= 3 * 5 + 1


def slowed(server: Canned, parts: Iterator[bytes]) -> Iterator[bytes]:
    """The parts; the store does not answer from the first one on."""
    for part in parts:
        server.answers_never = True
        yield part


@pytest.mark.parametrize(
    ("size", "part"),
    [(5 * MIB + 1, 5 * MIB), (50_000 * MIB, 5 * MIB), (50_000 * MIB + 1, 5 * MIB + 1)],
)
def test_a_large_file_has_no_more_parts_than_s3_takes(size: int, part: int) -> None:
    library = Mock()
    S3Objects(library, QUICK).put_file("a/b", iter([]), size)
    assert library.put.call_args.kwargs == {"chunk_size": part, "max_concurrency": 2}


def test_the_environment_does_not_take_the_condition_away(server: Canned) -> None:
    opened(server, AWS_CONDITIONAL_PUT="disabled").put_new("a", b"")
    assert server.seen[0].headers["if-none-match"] == "*"


def test_a_file_of_certificates_that_is_not_there_is_named(server: Canned) -> None:
    with pytest.raises(BadStoreSetting, match="AWS_CA_BUNDLE: /no/such/file cannot be read"):
        opened(server, AWS_CA_BUNDLE="/no/such/file")


def test_certificates_that_are_none_are_refused(server: Canned, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nplanted\n")
    with pytest.raises(BadStoreSetting, match="AWS_CA_BUNDLE") as refused:
        opened(server, AWS_CA_BUNDLE=str(tmp_path / "ca.pem"))
    assert "planted" not in str(refused.value)


def test_a_url_that_names_no_place_is_refused(server: Canned) -> None:
    for url in ("", "https://bucket/a", "s3://AKIDPLANTED:planted-secret@bucket/a", "s3://b/a?x=1"):
        with pytest.raises(BadStoreUrl) as refused:
            opened(server, url)
        assert "planted" not in str(refused.value)


def test_a_place_may_be_given_as_the_setting_has_it(server: Canned) -> None:
    with only_aws(variables(server)):
        open_store(TierUrl("bucket", "one"), limits=QUICK).put_new("a", b"")
    assert server.seen[0].path == "/bucket/one/a"


def test_plain_http_to_another_machine_is_refused_unless_it_is_allowed() -> None:
    with only_aws({"AWS_ENDPOINT_URL": "http://192.0.2.1:8333", "AWS_ALLOW_HTTP": "true"}):
        with pytest.raises(PlainHttpRefused, match=r"192\.0\.2\.1 is another machine"):
            open_store("s3://bucket/a")
        open_store("s3://bucket/a", allow_http=True)


def test_without_the_library_the_error_names_it(
    server: Canned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setitem(sys.modules, "obstore.exceptions", None)
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(StoreLibraryMissing, match=r"pip install 'horolog\[tier\]'"):
        opened(server)
