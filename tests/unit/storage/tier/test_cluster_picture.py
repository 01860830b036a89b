"""Pictures of a cluster, and the card of its tier: what is put, when, and by whom."""

from collections.abc import Callable

import pytest

from storage.errors import CorruptCheckpoint, NewerFormat
from storage.files.layout import REMOTE_FILE
from storage.tier import cluster_picture
from storage.tier.card import ForeignTier, claim, cluster_of
from storage.tier.cluster_picture import (
    FILES,
    SETTINGS_FILE,
    TOPICS_FILE,
    Content,
    PictureWriter,
    newest,
    read_files,
)
from storage.tier.names import CARD, CLUSTER, numbered
from storage.tier.port import StoreError
from storage.tier.sealed import sealed
from storage.tier.single_writer import WriterReplaced
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.tier.tier_world import CountingStore

ONE = Content("cluster", 1, {TOPICS_FILE: '{"format": 1}\n'})
OTHER = ONE._replace(files={TOPICS_FILE: '{"format": 1, "topics": {}}\n'})


def writer(store: CountingStore, clock: SimClock | None = None) -> PictureWriter:
    return PictureWriter(store, clock or SimClock())


def test_a_picture_is_put_when_something_has_changed() -> None:
    store, clock = CountingStore(), SimClock()
    one = writer(store, clock)
    assert one.write_if_changed(ONE)
    assert not one.write_if_changed(ONE)
    clock.advance(10)
    assert one.write_if_changed(OTHER)
    assert list(store.objects) == [numbered(CLUSTER, 1), numbered(CLUSTER, 2)]
    found = newest(store)
    assert found is not None
    assert (found.number, found.written_ms, found.content) == (2, clock.now_ms(), OTHER)


def test_a_second_process_goes_on_where_the_first_was() -> None:
    store = CountingStore()
    writer(store).write_if_changed(ONE)
    again = writer(store)
    assert not again.write_if_changed(ONE)
    assert again.write_if_changed(OTHER)
    assert len(store.objects) == 2


def test_the_picture_of_a_time_is_the_last_one_until_then() -> None:
    store, clock = CountingStore(), SimClock(1000)
    one = writer(store, clock)
    one.write_if_changed(ONE)
    clock.advance(500)
    one.write_if_changed(OTHER)
    found = {at: newest(store, at) for at in (999, 1000, 1499, 1500, 9999)}
    contents = {at: picture and picture.content for at, picture in found.items()}
    assert contents == {999: None, 1000: ONE, 1499: ONE, 1500: OTHER, 9999: OTHER}


def test_of_two_writers_one_stops() -> None:
    store = CountingStore()
    one, other = writer(store), writer(store)
    one.write_if_changed(ONE)
    other.write_if_changed(OTHER)
    with pytest.raises(WriterReplaced):
        one.write_if_changed(ONE._replace(node_id=2))
    other.write_if_changed(ONE)


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_lost_answer_is_settled_by_the_next_call(is_stored: bool) -> None:
    store = CountingStore()
    put, one = store.put_new, writer(store)

    def loses_the_answer(key: str, data: bytes) -> None:
        if is_stored:
            put(key, data)
        raise StoreError(key, "put_new", "time-out")

    store.put_new = loses_the_answer  # type: ignore[assignment, method-assign]
    with pytest.raises(StoreError):
        one.write_if_changed(ONE)
    store.put_new = put  # type: ignore[method-assign]
    assert not one.write_if_changed(ONE), "the first call has put it"
    assert one.write_if_changed(OTHER)
    assert list(store.objects) == [numbered(CLUSTER, 1), numbered(CLUSTER, 2)]


def test_a_spoilt_answer_is_no_other_writer() -> None:
    store = CountingStore()
    put, get, one = store.put_new, store.get, writer(store)

    def loses_the_answer(key: str, data: bytes) -> None:
        put(key, data)
        raise StoreError(key, "put_new", "time-out")

    store.put_new = loses_the_answer  # type: ignore[assignment, method-assign]
    with pytest.raises(StoreError):
        one.write_if_changed(ONE)
    store.put_new = put  # type: ignore[method-assign]
    store.get = lambda key: get(key)[:-3]  # type: ignore[method-assign]
    with pytest.raises(CorruptCheckpoint):
        one.write_if_changed(OTHER)
    store.get = get  # type: ignore[method-assign]
    assert one.write_if_changed(OTHER)


def test_a_damaged_or_newer_picture_is_refused() -> None:
    store = CountingStore()
    writer(store).write_if_changed(ONE)
    key = numbered(CLUSTER, 1)
    sound = store.objects[key]
    for position in range(0, len(sound), 7):
        store.objects[key] = sound[:position] + bytes([sound[position] ^ 1]) + sound[position + 1 :]
        with pytest.raises((CorruptCheckpoint, NewerFormat)):
            newest(store)
    store.objects[key] = sealed({"format": cluster_picture.FORMAT + 1})
    with pytest.raises(NewerFormat):
        newest(store)
    store.objects[key] = sealed({"format": cluster_picture.FORMAT})
    with pytest.raises(CorruptCheckpoint):
        newest(store)


def test_a_picture_under_another_number_is_refused() -> None:
    store = CountingStore()
    writer(store).write_if_changed(ONE)
    store.objects[numbered(CLUSTER, 2)] = store.objects[numbered(CLUSTER, 1)]
    with pytest.raises(CorruptCheckpoint, match="it is picture 1"):
        newest(store)


def test_files_are_repeated_as_they_are_and_others_never() -> None:
    fs = sim_env().fs
    fs.make_dir("/data")
    for name in (*FILES, "horolog-users.json", "horolog-tokens.json", REMOTE_FILE):
        fs.write_atomically(f"/data/{name}", b'{ "of": "%s"}\n' % name.encode())
    found = read_files(fs, "/data", lambda text: f"without secrets: {text}")
    settings = 'without secrets: { "of": "horolog-config.json"}\n'
    assert found == {name: f'{{ "of": "{name}"}}\n' for name in FILES} | {SETTINGS_FILE: settings}
    fs.remove(f"/data/{TOPICS_FILE}")
    assert TOPICS_FILE not in read_files(fs, "/data", lambda text: text)
    fs.write_atomically(f"/data/{TOPICS_FILE}", b"\xff")
    with pytest.raises(CorruptCheckpoint, match="no text"):
        read_files(fs, "/data", lambda text: text)


# --- the card ---


def test_a_tier_belongs_to_one_cluster() -> None:
    store = CountingStore()
    claim(store, "one")
    claim(store, "one")
    assert cluster_of(store) == "one"
    with pytest.raises(ForeignTier, match="belongs to the cluster one, not to two"):
        claim(store, "two")


@pytest.mark.parametrize("data", [
    b"", b"{}", b"[]", sealed({"format": 1}), sealed({"format": 1, "cluster_id": 7}),
    sealed({"format": 1, "cluster_id": "one"}).replace(b"one", b"two"),
])  # fmt: skip
@pytest.mark.parametrize("call", [cluster_of, lambda store: claim(store, "one")])
def test_a_damaged_card_is_nobodys(data: bytes, call: Callable[[CountingStore], object]) -> None:
    store = CountingStore()
    store.objects[CARD] = data
    with pytest.raises(CorruptCheckpoint):
        call(store)


def test_a_newer_card_is_refused() -> None:
    store = CountingStore()
    store.objects[CARD] = sealed({"format": 2, "cluster_id": "one"})
    with pytest.raises(NewerFormat):
        claim(store, "one")
