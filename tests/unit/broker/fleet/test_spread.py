"""Shards of a topic's partitions: few of them are spread over the nodes, many are even."""

from collections import Counter
from itertools import pairwise

import pytest

from broker.fleet.catalog.shards import stride


@pytest.mark.parametrize("shards", [1, 2, 3, 4, 12, 63, 64, 65, 97, 1000])
def test_every_shard_is_met_before_one_is_met_again(shards: int) -> None:
    met = Counter(each * stride(shards) % shards for each in range(shards))
    assert set(met.values()) == {1}


@pytest.mark.parametrize("partitions", [6, 12, 50])
def test_neighbours_are_spread_over_three_nodes_that_have_runs_of_shards(partitions: int) -> None:
    for first in range(64):
        owners = Counter((first + each * stride(64)) % 64 * 3 // 64 for each in range(partitions))
        assert set(owners) == {0, 1, 2}
        assert max(owners.values()) - min(owners.values()) <= 2, (first, owners)


def test_two_in_a_row_are_not_neighbours() -> None:
    shards = [each * stride(64) % 64 for each in range(64)]
    assert min(abs(a - b) for a, b in pairwise(shards)) > 20
