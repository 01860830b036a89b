"""Frames come out whole and in order, however the bytes were cut; absurd lengths are refused."""

import contextlib
import random

import pytest

from broker.runtime.connection_limits import CloseConnection
from broker.server.buffer_pool import SHARED_BYTES, SMALLEST_BODY, BufferPool
from broker.server.framing import LARGE_FRAME, ForeignProtocol, FrameReader

LIMIT = 100 * 1024 * 1024


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


class Receiver:
    """A reader fed with a stream, as a transport would feed it."""

    def __init__(
        self, *, hold_after: int = 10**9, limit: int = LIMIT, pool: BufferPool | None = None
    ) -> None:
        self.pool = pool or BufferPool()
        self.frames: list[bytes] = []
        self.hold_after = hold_after
        self.reader = FrameReader(self.pool, limit, self._handle)

    def _handle(self, frame: memoryview) -> bool:
        assert not frame.readonly, "handlers patch batches in place"
        self.frames.append(bytes(frame))
        return len(self.frames) % self.hold_after != 0

    def feed(self, data: bytes, at_most: int = 10**9) -> None:
        while data:
            view = self.reader.buffer()
            assert len(view) > 0
            size = min(len(view), len(data), at_most)
            view[:size] = data[:size]
            data = data[size:]
            self.reader.received(size)
            while self.reader.held:
                self.reader.resume()


SMALL = [bytes([n]) * (10 + n) for n in range(30)]


@pytest.mark.parametrize("cut", range(1, 60))
def test_every_cut_gives_the_same_frames(cut: int) -> None:
    receiver = Receiver()
    receiver.feed(b"".join(map(framed, SMALL)), at_most=cut)
    assert receiver.frames == SMALL
    assert receiver.reader.partial_bytes == 0


def test_a_stream_split_in_two_at_every_byte() -> None:
    stream = b"".join(map(framed, SMALL[:6]))
    for split in range(1, len(stream)):
        receiver = Receiver()
        receiver.feed(stream[:split])
        receiver.feed(stream[split:])
        assert receiver.frames == SMALL[:6]


def test_large_and_small_frames_mixed() -> None:
    rng = random.Random(7)
    sizes = [
        10,
        LARGE_FRAME - 4,
        LARGE_FRAME,
        LARGE_FRAME + 1,
        700_000,
        12,
        SHARED_BYTES,
        3_000_000,
    ]
    payloads = [rng.randbytes(rng.choice(sizes)) for _ in range(40)]
    stream = b"".join(map(framed, payloads))
    for at_most in (10_007, 65_536, 10**9):
        receiver = Receiver()
        receiver.feed(stream, at_most)
        assert receiver.frames == payloads


def test_held_frames_wait_for_resume_and_keep_their_order() -> None:
    receiver = Receiver(hold_after=3)
    payloads = [*SMALL, b"x" * (LARGE_FRAME * 3), *SMALL]
    receiver.feed(b"".join(map(framed, payloads)))
    assert receiver.frames == payloads


def test_a_claimed_size_is_not_allocated_before_bytes_arrive() -> None:
    receiver = Receiver()
    receiver.feed((90 * 1024 * 1024).to_bytes(4, "big") + b"x" * 100)
    assert len(receiver.reader.buffer()) <= SMALLEST_BODY


def test_equally_large_frames_are_received_in_place() -> None:
    receiver = Receiver()
    payload = b"p" * 1_000_000
    receiver.feed(framed(payload))
    assert len(receiver.reader.buffer()) == 1_000_004


def test_a_body_buffer_returns_to_the_pool() -> None:
    receiver = Receiver()
    receiver.feed(framed(b"p" * 1_000_000))
    assert receiver.pool.kept_bytes >= 1 << 20
    receiver.pool.trim()
    receiver.pool.trim()
    assert receiver.pool.kept_bytes == 0


@pytest.mark.parametrize("prefix", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"])
def test_an_absurd_length_is_refused_on_its_fourth_byte(prefix: bytes) -> None:
    receiver = Receiver()
    receiver.feed(framed(SMALL[0]) + prefix[:3])
    with pytest.raises(CloseConnection) as refusal:
        receiver.feed(prefix[3:])
    assert refusal.value.reason == "frame_size"


@pytest.mark.parametrize(
    ("first", "kind"),
    [(b"GET / HTTP/1.1\r\n", "http"), (b"\x16\x03\x01\x02\x00\x01", "tls"), (b"SSH-2.0", "ssh")],
)
def test_other_protocols_are_recognised(first: bytes, kind: str) -> None:
    with pytest.raises(ForeignProtocol) as refusal:
        Receiver().feed(first)
    assert refusal.value.kind == kind


def test_the_text_of_another_protocol_later_is_just_a_bad_length() -> None:
    receiver = Receiver()
    with pytest.raises(CloseConnection) as refusal:
        receiver.feed(framed(SMALL[0]) + b"GET / HTTP/1.1\r\n")
    assert refusal.value.reason == "frame_size"


def test_all_large_frames_together_are_bounded_and_every_buffer_comes_back() -> None:
    pool = BufferPool(most_bytes=4 * SMALLEST_BODY)
    large = framed(b"x" * (2 * SMALLEST_BODY - 100))
    first, second = Receiver(pool=pool), Receiver(pool=pool)
    first.feed(large[:-1])
    assert pool.used_bytes == 2 * SMALLEST_BODY
    with pytest.raises(CloseConnection) as refused:
        second.feed(framed(b"y" * (4 * SMALLEST_BODY)))
    assert refused.value.reason == "request_memory"
    second.reader.release()
    first.feed(large[-1:])
    first.feed(large + large[:1000])
    assert len(first.frames) == 2
    first.reader.release()
    assert pool.used_bytes == 0
    Receiver(pool=pool).feed(framed(b"z" * SMALLEST_BODY))
    assert pool.used_bytes == 0


@pytest.mark.parametrize("seed", range(20))
def test_no_buffer_is_lost_however_the_bytes_come(seed: int) -> None:
    dice = random.Random(seed)
    pool = BufferPool(most_bytes=6 * SMALLEST_BODY)
    for _ in range(10):
        receiver = Receiver(pool=pool, hold_after=dice.choice([1, 2, 10**9]))
        stream = b"".join(framed(bytes(dice.choice([10, LARGE_FRAME, 600_000]))) for _ in range(4))
        with contextlib.suppress(CloseConnection):
            receiver.feed(stream[: dice.randrange(len(stream))], at_most=dice.choice([7000, 10**9]))
        receiver.reader.release()
        assert pool.used_bytes == 0
