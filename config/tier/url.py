"""Place of a tier in an object store: `s3://bucket/prefix`, and nothing secret in it."""

import re
from dataclasses import dataclass

from config.values import KafkaType

SCHEME = "s3://"
MAX_PREFIX = 512  # of the 1024 bytes that S3 allows for a key; the rest is for our names
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_PART = re.compile(r"[A-Za-z0-9!_.*'()-]+", re.ASCII)
_SHAPE = "s3://bucket or s3://bucket/prefix"


@dataclass(frozen=True, slots=True)
class TierUrl:
    """A bucket, and the prefix of all keys in it: without slashes around it, empty for none."""

    bucket: str
    prefix: str = ""

    def __str__(self) -> str:
        """As the setting writes it."""
        return f"{SCHEME}{self.bucket}/{self.prefix}".rstrip("/")


@dataclass(frozen=True, slots=True)
class OptionalTierUrl:
    """One `s3://bucket/prefix`, or empty for none.

    No refusal repeats the text: a password may have been written into it.
    """

    @property
    def kafka_type(self) -> KafkaType:
        """STRING."""
        return KafkaType.STRING

    def parse(self, text: str) -> TierUrl | None:
        """ValueError naming the part that is wrong; None for the empty text."""
        text = text.strip()
        return _parsed(text) if text else None

    def canonical(self, text: str) -> str:
        """Without blanks and a slash at the end."""
        return str(self.parse(text) or "")

    def bounds(self) -> str:
        """For the documentation."""
        return f"{_SHAPE}, or empty for none"


def _parsed(text: str) -> TierUrl:
    if "@" in text:
        raise ValueError(
            f"no credentials belong into a URL: write {_SHAPE}; they come from the environment, "
            "a profile or the machine's role"
        )
    if "?" in text or "#" in text:
        raise ValueError(f"nothing may follow the prefix, no query and no fragment: {_SHAPE}")
    if not text.startswith(SCHEME):
        raise ValueError(f"must begin with {SCHEME}: {_SHAPE}")
    bucket, _, prefix = text.removeprefix(SCHEME).partition("/")
    if not _BUCKET.fullmatch(bucket) or ".." in bucket:
        raise ValueError(
            "the bucket's name must be 3 to 63 lower-case letters, digits, dots and dashes, "
            f"without a port: {_SHAPE}"
        )
    return TierUrl(bucket, _prefix(prefix.removesuffix("/")))


def _prefix(text: str) -> str:
    parts = text.split("/") if text else []
    if any(not _PART.fullmatch(part) or part in {".", ".."} for part in parts):
        raise ValueError(
            "the prefix must be names of letters, digits and !_.*'()- with one slash between two"
        )
    if len(text) > MAX_PREFIX:
        raise ValueError(f"the prefix is longer than {MAX_PREFIX} characters")
    return text
