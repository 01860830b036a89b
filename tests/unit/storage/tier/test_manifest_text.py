"""A manifest that is written whole after each copy, of rows whose texts are known."""

from uuid import UUID

from storage.files.layout import LOG
from storage.tier.manifests.manifest import (
    FilePart,
    Manifest,
    RemoteSegment,
    RowTexts,
    apply,
    render_full,
)
from storage.tier.sealed import sealed, sealed_list, text_of


def row(base_offset: int, crc: int = 1) -> RemoteSegment:
    parts = {LOG: FilePart(0, 100, crc)}
    return RemoteSegment(base_offset, base_offset + 9, f"{base_offset:016x}", parts, 5, 1, 2, 3, 4,
                         has_untimed=False)  # fmt: skip


ROWS = tuple(row(base) for base in range(0, 100, 10))


def manifest(*rows: RemoteSegment) -> Manifest:
    return Manifest(7, "orders", UUID(int=1), 0, segments=rows)


def test_it_is_the_same_with_texts_of_the_one_before() -> None:
    texts = RowTexts()
    for state in (manifest(*ROWS[:5]), manifest(*ROWS), manifest(*ROWS[3:]), manifest()):
        data = render_full(state, texts)
        assert data == render_full(state)
        assert apply("", None, data) == state


def test_a_row_that_has_changed_is_not_taken_for_the_one_before() -> None:
    texts = RowTexts()
    render_full(manifest(row(0), row(10)), texts)
    changed = manifest(row(0), row(10, crc=2))
    assert apply("", None, render_full(changed, texts)) == changed


def test_a_list_of_texts_is_sealed_as_the_whole_is() -> None:
    items = [{"a": 1}, {"b": [2, 3]}]
    whole = sealed({"format": 1, "items": items})
    assert sealed_list({"format": 1}, "items", map(text_of, items)) == whole
