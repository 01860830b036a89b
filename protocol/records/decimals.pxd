# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The same as decimals.py, for the compiled walkers: inlined into each of them."""


cdef inline unsigned long long magnitude_of(long long number) noexcept nogil:
    if number < 0:
        return <unsigned long long> (-(number + 1)) + 1
    return <unsigned long long> number


cdef inline long long digits_of(long long number) noexcept nogil:
    cdef unsigned long long raw = magnitude_of(number)
    cdef long long digits = 1 + (number < 0)
    while raw >= 100_000_000:
        raw //= 100_000_000
        digits += 8
    if raw >= 10_000:
        raw //= 10_000
        digits += 4
    return digits + (raw > 9) + (raw > 99) + (raw > 999)


cdef inline Py_ssize_t put_digits(
    unsigned char[::1] out, Py_ssize_t to, long long number, long long digits
) noexcept nogil:
    cdef unsigned long long raw = magnitude_of(number)
    cdef Py_ssize_t end = to + digits
    cdef Py_ssize_t at = end
    cdef unsigned int rest
    while raw >= 100_000_000:
        at -= 8
        put_eight(out, at, <unsigned int> (raw % 100_000_000))
        raw //= 100_000_000
    rest = <unsigned int> raw
    while rest > 9:
        at -= 2
        put_pair(out, at, rest % 100)
        rest //= 100
    if rest or at == end:
        out[at - 1] = 48 + rest
    if number < 0:
        out[to] = 45
    return end


# Eight digits at a time; no step waits for the one before, which is why it is no loop.
cdef inline void put_eight(
    unsigned char[::1] out, Py_ssize_t at, unsigned int number
) noexcept nogil:
    cdef unsigned int high = number // 10_000
    cdef unsigned int low = number % 10_000
    put_pair(out, at, high // 100)
    put_pair(out, at + 2, high % 100)
    put_pair(out, at + 4, low // 100)
    put_pair(out, at + 6, low % 100)


cdef inline void put_pair(
    unsigned char[::1] out, Py_ssize_t at, unsigned int number
) noexcept nogil:
    out[at] = 48 + number // 10
    out[at + 1] = 48 + number % 10
