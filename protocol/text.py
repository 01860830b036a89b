"""Text of clients: UTF-8. What is none becomes U+FFFD, as in Java's decoder, which Kafka reads by.

A name in another encoding is thus a name like any other, which no topic has. A long one with such
bytes is refused, since U+FFFD takes three of them and nobody could write it back.
"""

import codecs

MAX_STRING_BYTES = 32_767
"""Of every string that is read: what Kafka's own readers take, compact or not."""
MOST_BYTES = MAX_STRING_BYTES // 3
"""Of a string that is no UTF-8."""
AS_JAVA = "horolog-as-java"
"""Name of the rule, for `str` and `bytes.decode`: UnicodeDecodeError for what is too long."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """All that is left, in one step: a call for each byte would take a hostile client's time."""
    assert isinstance(error, UnicodeDecodeError)
    if len(error.object) > MOST_BYTES:
        raise error
    return error.object[error.start :].decode("utf-8", "replace"), len(error.object)


codecs.register_error(AS_JAVA, _replaced)
