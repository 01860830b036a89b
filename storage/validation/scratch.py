"""Large buffers that are used again: fresh ones cost more than what is done in them.

A megabyte of new memory is 256 page faults, which take as long as checking and storing a batch of
that size. A few buffers are kept between uses; beyond that they come and go. Any thread.
"""

SMALLEST_BYTES = 256 * 1024
KEPT_BUFFERS = 3
KEPT_BYTES = 8 * 1024 * 1024  # a larger buffer is not kept


class Scratch:
    """Buffers for use of a moment."""

    def __init__(self) -> None:
        """None yet."""
        self._idle: dict[int, bytearray] = {}

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least that size, with arbitrary contents."""
        for buffer in sorted(self._idle.values(), key=len):
            if len(buffer) >= size_bytes and self._idle.pop(id(buffer), None) is not None:
                return buffer
        return bytearray(max(SMALLEST_BYTES, 1 << (size_bytes - 1).bit_length()))

    def grown(self, buffer: bytearray, used_bytes: int, size_bytes: int) -> bytearray:
        """A buffer of at least that size that begins as `buffer` does, which is given back."""
        larger = self.take(size_bytes)
        larger[:used_bytes] = memoryview(buffer)[:used_bytes]
        self.give_back(buffer)
        return larger

    def give_back(self, buffer: bytearray) -> None:
        """Nobody looks at it any more."""
        if len(buffer) > KEPT_BYTES:
            return
        self._idle[id(buffer)] = buffer
        if len(self._idle) > KEPT_BUFFERS:
            smallest = min(self._idle.values(), key=len)
            self._idle.pop(id(smallest), None)
