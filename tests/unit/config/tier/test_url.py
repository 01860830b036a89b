"""The place of a tier: what is one, and refusals that name the reason and repeat no secret."""

import pytest

from config.errors import ConfigError
from config.names import broker_name
from config.tier.url import OptionalTierUrl, TierUrl

PARSE = OptionalTierUrl().parse


@pytest.mark.parametrize(
    ("text", "bucket", "prefix"),
    [
        ("s3://logs", "logs", ""),
        ("s3://logs/", "logs", ""),
        (" s3://logs/a ", "logs", "a"),
        ("s3://logs/a/b_c.d-e/", "logs", "a/b_c.d-e"),
        ("s3://my.logs-2/A1", "my.logs-2", "A1"),
        ("s3://abc/" + "p" * 512, "abc", "p" * 512),
    ],
)
def test_a_bucket_and_a_prefix(text: str, bucket: str, prefix: str) -> None:
    assert PARSE(text) == TierUrl(bucket, prefix)
    assert PARSE(OptionalTierUrl().canonical(text)) == TierUrl(bucket, prefix)


def test_empty_is_no_tier() -> None:
    assert PARSE("") is None
    assert PARSE("  ") is None
    assert OptionalTierUrl().canonical(" ") == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s3://key:secret@logs/a", "no credentials"),
        ("s3://logs/a@secret", "no credentials"),
        ("s3://logs/a?secret=secret", "no query"),
        ("s3://logs?secret", "no query"),
        ("s3://logs/a#secret", "no fragment"),
        ("https://logs/secret", "must begin with s3://"),
        ("S3://logs/secret", "must begin with s3://"),
        ("/var/secret", "must begin with s3://"),
        ("s3://", "the bucket's name"),
        ("s3:///secret", "the bucket's name"),
        ("s3://secret:9000/a", "without a port"),
        ("s3://Secret/a", "lower-case"),
        ("s3://se/a", "3 to 63"),
        (f"s3://{'secret' * 11}/a", "3 to 63"),
        ("s3://sec..ret/a", "the bucket's name"),
        ("s3://-secret/a", "the bucket's name"),
        ("s3://logs//secret", "one slash"),
        ("s3://logs/a//", "one slash"),
        ("s3://logs/../secret", "the prefix"),
        ("s3://logs/sec ret", "the prefix"),
        ("s3://logs/sécret", "the prefix"),
        ("s3://logs/secret%2F", "the prefix"),
        (f"s3://logs/{'secret' * 100}", "longer than 512"),
    ],
)
def test_what_is_no_place_is_refused_by_name_and_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as refused:
        broker_name("horolog.tier.url").parse(text)
    assert refused.value.key == "horolog.tier.url"
    assert "secret" not in str(refused.value).lower()
