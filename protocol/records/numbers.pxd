# cython: boundscheck=False, wraparound=False, initializedcheck=False
"""The same as numbers.py, for the compiled walkers: inlined into each of them.

Cython checks no index here: `zigzag` and `sized` judge each by their limit, which their callers
keep within the data; the others are called with places that were judged before.
"""

from libc cimport string
from libc.stdint cimport INT64_MAX, INT64_MIN


cdef inline (long long, Py_ssize_t) zigzag(
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t limit, int bits
) noexcept nogil:
    cdef unsigned long long byte
    cdef unsigned long long raw = 0
    cdef int shift = 0
    while at < limit:
        byte = data[at]
        at += 1
        if byte < 128:
            if shift > bits - 7 and byte >> (bits - shift):
                return 0, -1
            raw |= byte << shift
            return <long long> (raw >> 1) ^ -<long long> (raw & 1), at
        if shift > bits - 7:
            return 0, -1
        raw |= (byte & 127) << shift
        shift += 7
    return 0, -1


cdef inline (long long, Py_ssize_t) sized(
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    cdef long long size
    size, at = zigzag(data, at, end, 32)
    if at < 0 or size < -1 or size > end - at:
        return 0, -1
    return size, at


cdef inline (long long, Py_ssize_t) walked_zigzag(
    const unsigned char[::1] data, Py_ssize_t at
) noexcept nogil:
    cdef unsigned long long byte = data[at]
    cdef unsigned long long raw = byte & 127
    cdef int shift = 7
    while byte > 127:
        at += 1
        byte = data[at]
        raw |= (byte & 127) << shift
        shift += 7
    return <long long> (raw >> 1) ^ -<long long> (raw & 1), at + 1


cdef inline bint leaves_int64(long long base, long long delta) noexcept nogil:
    if delta > 0:
        return base > INT64_MAX - delta
    return base < INT64_MIN - delta


cdef inline unsigned long long folded(long long number) noexcept nogil:
    return (<unsigned long long> number << 1) ^ <unsigned long long> (number >> 63)


cdef inline Py_ssize_t zigzag_size(long long number) noexcept nogil:
    cdef unsigned long long raw = folded(number)
    cdef Py_ssize_t size = 1
    while raw > 127:
        raw >>= 7
        size += 1
    return size


cdef inline Py_ssize_t put_varint(
    unsigned char[::1] out, Py_ssize_t to, unsigned long long raw
) noexcept nogil:
    while raw > 127:
        out[to] = <unsigned char> (raw & 127) | 128
        raw >>= 7
        to += 1
    out[to] = <unsigned char> raw
    return to + 1


cdef inline Py_ssize_t put_zigzag(
    unsigned char[::1] out, Py_ssize_t to, long long number
) noexcept nogil:
    return put_varint(out, to, folded(number))


cdef inline Py_ssize_t put_bytes(
    unsigned char[::1] out, Py_ssize_t to,
    const unsigned char[::1] data, Py_ssize_t at, Py_ssize_t end
) noexcept nogil:
    if end > at:
        string.memcpy(&out[to], &data[at], end - at)
    return to + end - at


cdef inline long long int64_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    cdef unsigned long long number = data[at]
    number = number << 8 | data[at + 1]
    number = number << 8 | data[at + 2]
    number = number << 8 | data[at + 3]
    number = number << 8 | data[at + 4]
    number = number << 8 | data[at + 5]
    number = number << 8 | data[at + 6]
    return <long long> (number << 8 | data[at + 7])


cdef inline int int32_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    cdef unsigned int number = data[at]
    number = number << 8 | data[at + 1]
    number = number << 8 | data[at + 2]
    return <int> (number << 8 | data[at + 3])


cdef inline short int16_at(const unsigned char[::1] data, Py_ssize_t at) noexcept nogil:
    cdef unsigned short number = data[at]
    return <short> (number << 8 | data[at + 1])


cdef inline Py_ssize_t put_int32(
    unsigned char[::1] out, Py_ssize_t to, long long number
) noexcept nogil:
    out[to] = number >> 24 & 255
    out[to + 1] = number >> 16 & 255
    out[to + 2] = number >> 8 & 255
    out[to + 3] = number & 255
    return to + 4


cdef inline Py_ssize_t put_int64(
    unsigned char[::1] out, Py_ssize_t to, long long number
) noexcept nogil:
    return put_int32(out, put_int32(out, to, number >> 32), number)
