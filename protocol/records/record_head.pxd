# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The same as record_head.py, for the compiled walkers: inlined into each of them."""

from protocol.records.numbers cimport leaves_int64, zigzag


cdef inline (Py_ssize_t, Py_ssize_t, long long, long long, int) head_of(
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t limit, long long base_timestamp
) noexcept nogil:
    cdef Py_ssize_t end
    cdef long long size, delta, offset_delta
    size, at = zigzag(data, at, limit, 32)
    if at < 0 or size < 1 or size > limit - at:
        return 0, 0, 0, 0, 1
    end = at + size
    delta, at = zigzag(data, at + 1, end, 64)
    if at < 0:
        return 0, 0, 0, 0, 2
    if leaves_int64(base_timestamp, delta):
        return 0, 0, 0, 0, 3
    offset_delta, at = zigzag(data, at, end, 32)
    if at < 0:
        return 0, 0, 0, 0, 4
    return at, end, base_timestamp + delta, offset_delta, 0
