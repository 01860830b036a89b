"""The endpoint of a store, by the environment."""

import pytest

from broker.access.store.endpoint import choose_endpoint, is_plain
from broker.access.store.refusals import BadStoreSetting, PlainHttpRefused

URL, URL_S3, OLD = "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"


def test_the_variable_of_s3_comes_first_and_none_means_amazon() -> None:
    all_three = {OLD: "https://c", URL: "https://b", URL_S3: "https://a:9000/x"}
    assert choose_endpoint(all_three, allow_http=False) == "https://a:9000/x"
    assert choose_endpoint({OLD: "https://c", URL: "https://b"}, allow_http=False) == "https://b"
    assert choose_endpoint({OLD: " https://c ", URL: ""}, allow_http=False) == "https://c"
    assert choose_endpoint({}, allow_http=False) is None


@pytest.mark.parametrize(
    "endpoint",
    ["http://127.0.0.1:1", "http://127.9.9.9", "HTTP://localhost:8333", "http://[::1]:8333/"],
)
def test_plain_http_reaches_this_machine(endpoint: str) -> None:
    assert choose_endpoint({URL: endpoint}, allow_http=False) == endpoint
    assert is_plain(endpoint)


@pytest.mark.parametrize(
    "endpoint",
    ["http://10.0.0.1", "http://0.0.0.0:1", "http://localhost.evil.test", "http://[fe80::1]:80"],
)
def test_plain_http_to_others_is_refused_unless_it_is_allowed(endpoint: str) -> None:
    with pytest.raises(PlainHttpRefused, match="AWS_ENDPOINT_URL is without TLS"):
        choose_endpoint({URL: endpoint}, allow_http=False)
    assert choose_endpoint({URL: endpoint}, allow_http=True) == endpoint
    assert not is_plain(endpoint.replace("http:", "https:"))


@pytest.mark.parametrize(
    "endpoint",
    ["planted", "https://", "ftp://planted", "https://planted:port", "https://[planted",
     "https://user:planted@store", "http://planted@127.0.0.1"],
)  # fmt: skip
def test_what_is_no_endpoint_is_refused_and_not_repeated(endpoint: str) -> None:
    with pytest.raises(BadStoreSetting, match=URL_S3) as refused:
        choose_endpoint({URL_S3: endpoint}, allow_http=True)
    assert "planted" not in str(refused.value)
