# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Log compaction inside of a batch: maps the last offset of each key, and keeps records.

Like `walk`, written once and run compiled or as it stands, with the same results. Compiled, the
loops let other threads run. Keys are known by a keyed 128-bit hash (SipHash-2-4), as Kafka knows
them by their MD5: different keys never meet by chance, and without the secret not by intent.
Every index into a payload is checked against its end before it is used; Cython's own checks are
off. Rules: semantics.md 7.2, 8.3, 8.4.
"""

from __future__ import annotations

from hashlib import blake2b

import cython

from protocol.records.batch import InvalidRecords
from protocol.records.kept import Kept
from protocol.records.record_head import HEAD_FAULTS, OFFSET_FAULT

if cython.compiled:
    from cython.cimports.protocol.records.numbers import put_bytes, sized
    from cython.cimports.protocol.records.record_head import head_of
else:
    from protocol.records.numbers import put_bytes, sized
    from protocol.records.record_head import head_of

HIGHEST = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
SIP0 = cython.declare(cython.ulonglong, 0x736F6D6570736575)
SIP1 = cython.declare(cython.ulonglong, 0x646F72616E646F6D)
SIP2 = cython.declare(cython.ulonglong, 0x6C7967656E657261)
SIP3 = cython.declare(cython.ulonglong, 0x7465646279746573)
BAD_OFFSET = cython.declare(cython.int, OFFSET_FAULT)
AHEAD = cython.declare(cython.longlong, 32)  # records whose entries are fetched at one time

Buffer = bytes | bytearray | memoryview
ENTRY_BYTES = 24  # 16 of hash, 8 of offset
SECRET_BYTES = 16

_FAULTS = (*HEAD_FAULTS, "its key runs past the record", "its value runs past the record")


@cython.cclass
class KeyMap:
    """The last offset of each key, in memory that is given and does not grow.

    An entry is the key's hash and its offset + 1; 0 is a free slot. Slots are tried one after the
    other. One thread at a time.
    """

    words: cython.ulonglong[::1]
    slots: cython.ulonglong
    most: cython.longlong
    used: cython.longlong
    k0: cython.ulonglong
    k1: cython.ulonglong
    h0: cython.ulonglong
    h1: cython.ulonglong
    ahead0: cython.ulonglong[32]
    ahead1: cython.ulonglong[32]
    touched: cython.ulonglong

    def __init__(self, memory: Buffer, load_factor: float, secret: bytes) -> None:
        """Use all of `memory`, which must be zeros, up to the load factor (at least one entry)."""
        slots = len(memory) // ENTRY_BYTES
        if not 2 <= slots < 1 << 32 or len(secret) != SECRET_BYTES:
            raise ValueError(f"{len(memory)} bytes hold no map")
        self.words = memoryview(memory)[: slots * ENTRY_BYTES].cast("B").cast("Q")
        self.slots = slots
        self.most = max(1, min(slots - 1, int(slots * load_factor)))
        self.used = 0
        self.k0 = int.from_bytes(secret[:8], "little")
        self.k1 = int.from_bytes(secret[8:], "little")

    def __len__(self) -> int:
        """Number of different keys in the map."""
        return self.used

    @property
    def capacity(self) -> int:
        """Number of different keys that fit."""
        return self.most

    def get(self, key: bytes) -> int:
        """The last offset of a key, -1 if it was never noted."""
        data: cython.const[cython.uchar][::1] = key
        hash_key(self, data, 0, len(key))
        return cython.cast(cython.longlong, self.words[place_of(self) + 2]) - 1

    def put(self, key: bytes, offset: int) -> bool:
        """Note a key's offset; False when it is a new key and there is no room."""
        data: cython.const[cython.uchar][::1] = key
        hash_key(self, data, 0, len(key))
        return note(self, offset)


@cython.cclass
class RecordWalk:
    """One record of a payload: places of its parts. Sizes of -1 are nulls."""

    end: cython.Py_ssize_t
    timestamp: cython.longlong
    offset_delta: cython.longlong
    key_at: cython.Py_ssize_t
    key_size: cython.longlong
    value_size: cython.longlong


def map_keys(
    keys: KeyMap,
    payload: Buffer,
    count: cython.longlong,
    base_offset: cython.longlong,
    first_offset: cython.longlong,
) -> int:
    """Note the offset of every record with a key, from `first_offset` on.

    Gives -1, or the offset of the first record that found no room. InvalidRecords when a record
    is damaged or there are fewer than `count`.
    """
    data: cython.const[cython.uchar][::1] = payload
    limit: cython.Py_ssize_t = len(payload)
    at: cython.Py_ssize_t = 0
    index: cython.longlong = 0
    offset: cython.longlong = -1
    fault: cython.int = 0
    record: RecordWalk = RecordWalk()
    with cython.nogil:
        while index < count:
            if index % AHEAD == 0:
                look_ahead(keys, record, data, at, limit, count - index)
            fault = walk(record, data, at, limit, 0)
            if fault:
                break
            offset = base_offset + record.offset_delta
            if offset >= first_offset and record.key_size >= 0:
                recall(keys, record, data, index)
                if not note(keys, offset):
                    break
            at = record.end
            index += 1
    if fault:
        raise damaged(index, fault)
    return -1 if index >= count else offset


def keep_records(  # noqa: PLR0917 - called by position, once a batch
    keys: KeyMap,
    payload: Buffer,
    count: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    mapped_before: cython.longlong,
    drop_tombstones: cython.bint,
    out: bytearray | memoryview,
) -> Kept:
    """Copy to `out` (at least as large as the payload) the records that stay.

    A record stays when its offset is not below `mapped_before`; else when it has a key of which
    no later offset is noted, and a value or, unless `drop_tombstones`, none. InvalidRecords as
    `map_keys`.
    """
    data: cython.const[cython.uchar][::1] = payload
    target: cython.uchar[::1] = out
    limit: cython.Py_ssize_t = len(payload)
    at: cython.Py_ssize_t = 0
    to: cython.Py_ssize_t = 0
    index: cython.longlong = 0
    timestamp: cython.longlong
    minimum: cython.longlong = HIGHEST
    maximum: cython.longlong = -1
    kept: cython.longlong = 0
    untimed: cython.longlong = 0
    tombstones: cython.longlong = 0
    keyless: cython.longlong = 0
    fault: cython.int = 0
    record: RecordWalk = RecordWalk()
    if len(out) < limit:
        raise ValueError("the room for kept records is smaller than the payload")
    with cython.nogil:
        while index < count:
            if index % AHEAD == 0:
                look_ahead(keys, record, data, at, limit, count - index)
            fault = walk(record, data, at, limit, base_timestamp)
            if fault:
                break
            if stays(keys, record, data, index, base_offset, mapped_before, drop_tombstones):
                timestamp = record.timestamp
                untimed += timestamp == -1
                if timestamp != -1:
                    minimum = min(minimum, timestamp)
                    maximum = max(maximum, timestamp)
                tombstones += record.value_size < 0
                kept += 1
                to = put_bytes(target, to, data, at, record.end)
            else:
                keyless += record.key_size < 0
            at = record.end
            index += 1
    if fault:
        raise damaged(index, fault)
    if untimed == kept:
        minimum = -1
    return Kept(kept, to, minimum, maximum, untimed, tombstones, keyless)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def stays(  # noqa: PLR0917 - private, called by position
    keys: KeyMap,
    record: RecordWalk,
    data: cython.const[cython.uchar][::1],
    index: cython.longlong,
    base_offset: cython.longlong,
    mapped_before: cython.longlong,
    drop_tombstones: cython.bint,
) -> cython.bint:
    """True when a record stays: see `keep_records`."""
    offset: cython.longlong = base_offset + record.offset_delta
    if offset >= mapped_before:
        return True
    if record.key_size < 0 or (drop_tombstones and record.value_size < 0):
        return False
    recall(keys, record, data, index)
    return offset >= cython.cast(cython.longlong, keys.words[place_of(keys) + 2]) - 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def look_ahead(  # noqa: PLR0917 - private, called by position
    keys: KeyMap,
    record: RecordWalk,
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.void:
    """Hash the keys of the next records, and read where their entries are, all at one time.

    The map is larger than the processor's caches: one by one, each entry would be waited for.
    Damage is left for the pass itself to find.
    """
    index: cython.longlong
    word: cython.ulonglong = 0
    if not cython.compiled:
        return
    count = min(count, AHEAD)
    for index in range(count):
        if walk(record, data, at, limit, 0):
            count = index
            break
        hash_key(keys, data, record.key_at, max(record.key_size, 0))
        keys.ahead0[index] = keys.h0
        keys.ahead1[index] = keys.h1
        at = record.end
    for index in range(count):
        word ^= keys.words[3 * (((keys.ahead0[index] >> 32) * keys.slots) >> 32) + 2]
    keys.touched = word  # so that nobody finds the reading needless


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def recall(
    keys: KeyMap,
    record: RecordWalk,
    data: cython.const[cython.uchar][::1],
    index: cython.longlong,
) -> cython.void:
    """Have the hash of the record's key in the map: `look_ahead` knows it."""
    if not cython.compiled:
        hash_key(keys, data, record.key_at, record.key_size)
        return
    keys.h0 = keys.ahead0[index % AHEAD]
    keys.h1 = keys.ahead1[index % AHEAD]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def walk(
    record: RecordWalk,
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
) -> cython.int:
    """Find the parts of the record at `at`, up to its value; a fault or 0."""
    end: cython.Py_ssize_t
    fault: cython.int
    at, end, record.timestamp, record.offset_delta, fault = head_of(data, at, limit, base_timestamp)
    if fault:
        return fault
    if record.offset_delta < 0:
        return BAD_OFFSET
    record.end = end
    record.key_size, record.key_at = sized(data, at, end)
    if record.key_at < 0:
        return 5
    record.value_size, at = sized(data, record.key_at + max(record.key_size, 0), end)
    return 6 if at < 0 else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def note(keys: KeyMap, offset: cython.longlong) -> cython.bint:
    """Note the offset of the key whose hash is in the map; False when there is no room for it."""
    place: cython.Py_ssize_t = place_of(keys)
    if keys.words[place + 2] == 0:
        if keys.used >= keys.most:
            return False
        keys.used += 1
        keys.words[place] = keys.h0
        keys.words[place + 1] = keys.h1
    keys.words[place + 2] = offset + 1
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def place_of(keys: KeyMap) -> cython.Py_ssize_t:
    """Place of the hash's entry in the map, present or future, in words."""
    slot: cython.ulonglong = ((keys.h0 >> 32) * keys.slots) >> 32
    place: cython.Py_ssize_t
    while True:
        place = 3 * slot
        if keys.words[place + 2] == 0 or (
            keys.words[place] == keys.h0 and keys.words[place + 1] == keys.h1
        ):
            return place
        slot += 1
        if slot == keys.slots:
            slot = 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def hash_key(
    keys: KeyMap,
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
) -> cython.void:
    """SipHash-2-4 with 128 bits of output (Aumasson and Bernstein)."""
    v0: cython.ulonglong = keys.k0 ^ SIP0
    v1: cython.ulonglong = keys.k1 ^ SIP1 ^ 0xEE
    v2: cython.ulonglong = keys.k0 ^ SIP2
    v3: cython.ulonglong = keys.k1 ^ SIP3
    word: cython.ulonglong
    left: cython.Py_ssize_t = size
    _turn: cython.int
    if not cython.compiled:
        keys.h0, keys.h1 = stand_in(bytes(data[at : at + size]), keys.k0, keys.k1)
        return
    while left >= 0:  # the last word has what is left, and the size
        word = word_at(data, at, min(left, 8))
        if left < 8:
            word |= cython.cast(cython.ulonglong, size) << 56
        v3 ^= word
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
        v0 ^= word
        at += 8
        left -= 8
    v2 ^= 0xEE
    for _turn in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    keys.h0 = v0 ^ v1 ^ v2 ^ v3
    v1 ^= 0xDD
    for _turn in range(4):
        v0, v1, v2, v3 = sip_round(v0, v1, v2, v3)
    keys.h1 = v0 ^ v1 ^ v2 ^ v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def sip_round(
    v0: cython.ulonglong, v1: cython.ulonglong, v2: cython.ulonglong, v3: cython.ulonglong
) -> tuple[cython.ulonglong, cython.ulonglong, cython.ulonglong, cython.ulonglong]:
    """One round of SipHash; compiled only, for sums have to stay within 64 bits."""
    v0 += v1
    v1 = (v1 << 13 | v1 >> 51) ^ v0
    v0 = v0 << 32 | v0 >> 32
    v2 += v3
    v3 = (v3 << 16 | v3 >> 48) ^ v2
    v0 += v3
    v3 = (v3 << 21 | v3 >> 43) ^ v0
    v2 += v1
    v1 = (v1 << 17 | v1 >> 47) ^ v2
    v2 = v2 << 32 | v2 >> 32
    return v0, v1, v2, v3


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def word_at(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> cython.ulonglong:
    """Up to eight bytes as a little-endian number."""
    word: cython.ulonglong = 0
    index: cython.Py_ssize_t
    for index in range(size):
        word |= cython.cast(cython.ulonglong, data[at + index]) << (8 * index)
    return word


def stand_in(key: bytes, k0: int, k1: int) -> tuple[int, int]:
    """Another keyed hash of 128 bits, for where this module is not compiled."""
    secret = k0.to_bytes(8, "little") + k1.to_bytes(8, "little")
    digest = blake2b(key, digest_size=16, key=secret).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def damaged(index: int, fault: int) -> InvalidRecords:
    """Build the refusal of one record."""
    return InvalidRecords(f"record {index}: {_FAULTS[fault]}")
