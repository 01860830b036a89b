"""Lives with back-ups by seed: cut off, raced by a broker at work, swept, always restored."""

import pytest

from tests.support.backup.backup_life import BackupLife


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_lives_with_back_ups(first: int) -> None:
    lives = []
    for seed in range(first, first + 10):
        life = BackupLife(seed)
        life.live(25)
        lives.append(life)
    assert sum(each.cut_off for each in lives) > 5
    assert sum(each.raced for each in lives) > 5
