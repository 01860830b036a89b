"""Any bit of any index file may flip: answers stay those of a full scan."""

import random

import pytest

from storage.env import Env
from storage.recovery.loading import LoadHints
from tests.support.disk.simenv import SeededRng
from tests.support.records.logs import open_log
from tests.support.records.time_logs import make_time_log

FLIPS_A_LOG = 8


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits_change_no_answer(seed: int) -> None:
    original = make_time_log(seed)
    settings = {name: getattr(original.log.config, name) for name in original.log.config.__slots__}
    original.log.close()
    dice = random.Random(seed)
    for _ in range(FLIPS_A_LOG):
        fs = original.fs_of_log().after_kill()
        names = [
            entry.name
            for entry in fs.list_dir(original.log.files.path)
            if entry.name.endswith((".index", ".timeindex", ".zones")) and entry.size_bytes
        ]
        if not names:
            return
        file = fs.open(f"{original.log.files.path}/{dice.choice(names)}")
        at = dice.randrange(file.size())
        file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1 << dice.randrange(8)]))
        known = LoadHints(is_clean=True, start_offset=original.start_offset)
        env = Env(original.env.clock, fs, SeededRng())
        log = open_log(env, known, original.log.files.path, **settings)
        end = log.snapshot.log_end_offset
        assert end == len(original.records)
        for timestamp in original.wanted_times(dice, 4):
            answer = log.search.first_at_or_after(timestamp, below=end)
            found = None if answer is None else (answer.timestamp, answer.offset)
            assert found == original.expected(timestamp), f"{file.path} byte {at}"
        for offset in range(original.start_offset, end, max(1, end // 5)):
            data = log.read(offset, 100, up_to=end, min_one_batch=True).read()
            assert int.from_bytes(data[:8], "big") <= offset
            assert int.from_bytes(data[:8], "big") + int.from_bytes(data[23:27], "big") >= offset
