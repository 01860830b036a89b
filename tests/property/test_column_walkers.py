"""Compiled and as source, columns of records are alike, and damage is refused alike."""

from array import array
from types import ModuleType

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records import columns, scan
from protocol.records.batch import HEADER_BYTES, read_header
from protocol.records.builder import build_batch
from tests.support.records.record_walkers import from_source

SOURCE, SOURCE_SCAN = from_source("columns"), from_source("scan")
TIMES = st.integers(-2, 50) | st.integers(-(2**61), 2**61)
FIELDS = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(max_size=5), FIELDS), max_size=3)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=6)
ANY = st.integers(-(2**63), 2**63 - 1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, "array[int]"]:
    """Payloads of batches in a row, perhaps damaged, and their table, perhaps wrong."""
    data, numbers = bytearray(), array("q")
    for _ in range(draw(st.integers(0, 3))):
        batch = build_batch(draw(ROWS))
        header = read_header(batch)
        start = len(data)
        data += batch[HEADER_BYTES:]
        numbers.extend((start, len(data), header.record_count, draw(TIMES), header.base_timestamp))
        numbers.extend((draw(TIMES), draw(st.integers(0, 1))))
    for at in draw(st.lists(st.integers(0, len(data) - 1), max_size=2)) if data else ():
        data[at] = draw(st.integers(0, 255))
    if numbers and draw(st.integers(0, 5)) == 0:
        numbers[draw(st.integers(0, len(numbers) - 1))] = draw(st.integers(-3, 90))
    return bytes(data), numbers


def room_of(count: int, module: ModuleType) -> "columns.Room":
    room: columns.Room = module.Room(*(array("q", bytes(8 * count)) for _ in range(7)))
    return room


def fields_of(count: int, size: int) -> tuple["array[int]", bytearray, bytearray]:
    return array("i", bytes(4 * (count + 1))), bytearray(count), bytearray(size)


def everything(module: ModuleType, data: bytes, table: "array[int]", wanted: object) -> object:
    """All that can be taken from the payloads, or the refusal."""
    count = sum(max(0, min(each, 1000)) for each in table[2::7])
    room = room_of(count, module)
    try:
        found = module.locate_records(data, table, wanted, room)
        places, ends = room.places[:found], room.ends[:found]
        taken: list[object] = [found, *(list(each[:found]) for each in room)]
        for _ in range(2):
            fields = module.Fields(*fields_of(found, len(data)))
            taken += (module.take_fields(data, places, ends, fields), fields)
        total = module.count_headers(data, places, ends)
        lists = module.Fields(*fields_of(found, 0))
        names, values = (module.Fields(*fields_of(total, len(data))) for _ in range(2))
        sizes = module.take_headers(data, places, ends, module.HeaderRoom(lists, names, values))
        return [*taken, total, sizes, tuple(lists), tuple(names), tuple(values)]
    except (DecodeError, ValueError) as error:
        return type(error).__name__, str(error)


@given(cases(), ANY | TIMES, ANY | TIMES, ANY | TIMES, ANY | TIMES)
def test_columns_agree(
    case: tuple[bytes, "array[int]"], first: int, last: int, low: int, high: int
) -> None:
    bounds = (first, last, low, high)

    assert everything(columns, *case, columns.Wanted(*bounds)) == everything(
        SOURCE, *case, SOURCE.Wanted(*bounds)
    )


@given(st.lists(ROWS, max_size=3), st.integers(0, 4), st.data())
def test_tables_agree_and_are_what_a_scan_finds(
    batches: list[list[tuple[int, bytes, bytes, list[tuple[str, bytes]]]]],
    capacity: int,
    draw: st.DataObject,
) -> None:
    data = bytearray(b"".join(build_batch(rows, base_offset=9) for rows in batches))
    if data and draw.draw(st.booleans()):
        data[draw.draw(st.integers(0, len(data) - 1))] ^= 1
    del data[draw.draw(st.integers(0, len(data))) :]
    scanned = scan.scan_batches(data)
    for module in (scan, SOURCE_SCAN):
        table = array("q", bytes(12 * 8 * capacity))
        count, found = module.tabulate_batches(data, 0, table)
        rows = [tuple(table[12 * each : 12 * each + 12]) for each in range(count)]
        assert rows == scanned.batches[:capacity]
        if count < capacity:
            assert tuple(found)[1:] == tuple(scanned)[1:]
