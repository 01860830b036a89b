"""A log with messages of formats 0 and 1 and every codec is archived once, across a crash."""

import time
from collections import Counter
from pathlib import Path

import pytest

from pipeline.sinks.archive.log_source import LogSource
from pipeline.sinks.archive.run import Wishes
from pipeline.sources.options import parse
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.old_formats.legacy_builder import build_set
from storage.files.layout import LOG
from tests.pipeline.test_archive_between_tables import Died, dies_behind, later
from tests.support.spark.archives import FORMATS, opened, rows_of, run
from tests.support.spark.made_up_records import DAY_MS

Content = tuple[bytes | None, bytes | None]
OLD_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
SET = 9
WISHES = Wishes(round_bytes=1, oldest_ms=5 * DAY_MS)
LATER = Wishes(round_bytes=1 << 20, oldest_ms=4 * DAY_MS, ahead_ms=2 * DAY_MS)


def filled(folder: Path) -> dict[int, Content]:
    """A partition of all formats and codecs; what is at each offset."""
    now_ms = time.time_ns() // 1_000_000
    data, content = b"", {}
    for magic, codecs in ((0, OLD_CODECS), (1, OLD_CODECS), (2, tuple(Codec))):
        for codec in codecs:
            offset = len(content)
            rows = [
                (at, now_ms - at % 9 * DAY_MS, b"k%d" % at, None if at % 7 == 2 else bytes(at))
                for at in range(offset, offset + SET)
            ]
            content.update({at: (key, value) for at, _, key, value in rows})
            if magic < 2:
                data += build_set(rows, magic, codec=codec)
            else:
                data += build_batch([row[1:] for row in rows], base_offset=offset, codec=codec)
    folder.mkdir(parents=True)
    (folder / f"{0:020d}{LOG}").write_bytes(data)
    return content


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("step", range(3))
def test_old_messages_of_every_codec(
    kind: str, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = filled(tmp_path / "data" / "t-0")
    out = tmp_path / "out"
    source = LogSource(parse({"log_dirs": str(tmp_path / "data"), "subscribe": "t"}))
    with opened(kind, out, value_schema=None) as target:
        if kind == "parquet":
            monkeypatch.setattr(target, "_settle", lambda _: (_ for _ in ()).throw(Died))
        else:
            dies_behind(monkeypatch, target, step // 2, is_lost=step == 1)
        with pytest.raises(Died):
            run(target, source, WISHES)
    later(monkeypatch, DAY_MS // 2)

    with opened(kind, out, value_schema=None) as target:
        run(target, source, LATER)
        assert not run(target, source, LATER)

    rows = [row for _, row in rows_of(kind, out)]
    assert Counter(row["offset"] for row in rows) == Counter(wanted.keys())
    assert {row["offset"]: (row["key"], row["value"]) for row in rows} == wanted
