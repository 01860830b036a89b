"""The checksum of batches and files."""

import crc32c as library
import pytest

from protocol.checksum import crc32c

# RFC 3720, appendix B.4
EXAMPLES = [
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (b"123456789", 0xE3069283),
]


@pytest.mark.parametrize(("data", "sum_"), EXAMPLES)
def test_the_published_examples(data: bytes, sum_: int) -> None:
    assert crc32c(data) == sum_


def test_it_goes_on_from_a_sum_and_takes_any_buffer() -> None:
    whole = b"of a batch and of a file"
    assert crc32c(memoryview(whole)[5:], crc32c(bytearray(whole[:5]))) == crc32c(whole)


def test_it_is_the_librarys() -> None:
    assert crc32c(b"of both") == library.crc32c(b"of both")
