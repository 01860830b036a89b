"""Hands messages to librdkafka in batches, without Python work for each of them.

The library is the one that confluent-kafka brings; its own `produce_batch` takes longer for a
message than the brokers under test do, and so hides the difference between them.
"""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import confluent_kafka

from tests.bench.wire import BenchFailed

PRODUCER = 0
BLOCK_WHEN_FULL = 0x4
ERROR_TEXT_BYTES = 512


class _Message(ctypes.Structure):
    """rd_kafka_message_t."""

    _fields_ = (
        ("err", ctypes.c_int),
        ("topic", ctypes.c_void_p),
        ("partition", ctypes.c_int32),
        ("payload", ctypes.c_char_p),
        ("len", ctypes.c_size_t),
        ("key", ctypes.c_void_p),
        ("key_len", ctypes.c_size_t),
        ("offset", ctypes.c_int64),
        ("private", ctypes.c_void_p),
    )


_Failed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(_Message), ctypes.c_void_p)


def _library() -> ctypes.CDLL:
    (path,) = (Path(confluent_kafka.__file__).parents[1] / "confluent_kafka.libs").glob(
        "librdkafka-*.so*"
    )
    library = ctypes.CDLL(str(path))
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_topic_new.restype = ctypes.c_void_p
    return library


class BatchProducer:
    """Sends batches of equal calls to partition 0 of one topic."""

    def __init__(self, topic: str, settings: Mapping[str, object]) -> None:
        """`settings` are librdkafka's; BenchFailed when it refuses one."""
        self._library = _library()
        self._failures = 0
        self._on_failure = _Failed(self._failed)  # kept, because the library keeps only a pointer
        text = ctypes.create_string_buffer(ERROR_TEXT_BYTES)
        conf = ctypes.c_void_p(self._library.rd_kafka_conf_new())
        for key, value in settings.items():
            told = str(value).lower() if isinstance(value, bool) else str(value)
            if self._library.rd_kafka_conf_set(
                conf, key.encode(), told.encode(), text, ctypes.c_size_t(ERROR_TEXT_BYTES)
            ):
                raise BenchFailed(text.value.decode())
        self._library.rd_kafka_conf_set_dr_msg_cb(conf, self._on_failure)
        handle = self._library.rd_kafka_new(PRODUCER, conf, text, ctypes.c_size_t(ERROR_TEXT_BYTES))
        if not handle:
            raise BenchFailed(text.value.decode())
        self._handle = ctypes.c_void_p(handle)
        self._topic = ctypes.c_void_p(
            self._library.rd_kafka_topic_new(self._handle, topic.encode(), None)
        )

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Drops what was not sent."""
        self._library.rd_kafka_topic_destroy(self._topic)
        self._library.rd_kafka_destroy(self._handle)

    def messages(self, values: Sequence[bytes]) -> "ctypes.Array[_Message]":
        """A batch to send as often as wanted; its values are not copied, so it has to be kept."""
        batch = (_Message * len(values))()
        for message, value in zip(batch, values, strict=True):
            message.payload, message.len = value, len(value)
        return batch

    def send(self, batch: "ctypes.Array[_Message]") -> None:
        """Queues a batch, waiting for room."""
        sent = self._library.rd_kafka_produce_batch(
            self._topic, 0, BLOCK_WHEN_FULL, batch, len(batch)
        )
        if sent != len(batch):
            raise BenchFailed(f"{len(batch) - sent} of {len(batch)} messages were refused")

    def flush(self, seconds: float) -> None:
        """Returns when everything is acknowledged; BenchFailed when it is not in time."""
        if self._library.rd_kafka_flush(self._handle, int(seconds * 1000)) or self._failures:
            raise BenchFailed(f"not everything was acknowledged: {self._failures} failed")

    def _failed(self, _: object, message: object, __: object) -> None:
        self._failures += 1
