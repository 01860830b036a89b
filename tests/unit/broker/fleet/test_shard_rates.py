"""Rates of shards out of what was committed of them."""

from broker.fleet.catalog.rows import OwnedShard
from broker.fleet.tally import ShardRates

ONE, TWO = OwnedShard(1, 5), OwnedShard(2, 5)


def test_a_rate_is_of_the_time_between_two_calls_and_half_of_the_one_before() -> None:
    rates = ShardRates()
    assert rates.measure({}, [ONE], 100.0) == {}
    assert rates.measure({1: 3000}, [ONE], 130.0) == {1: 100}
    assert rates.measure({1: 3000}, [ONE], 160.0) == {1: 50}
    assert rates.measure({1: 3000}, [ONE], 190.0) == {1: 25}


def test_a_shard_that_was_not_led_all_the_time_has_no_rate_yet() -> None:
    rates = ShardRates()
    rates.measure({}, [ONE], 0.0)
    assert rates.measure({1: 300, 2: 900}, [ONE, TWO], 30.0) == {1: 10}
    assert rates.measure({1: 300, 2: 1200}, [TWO], 60.0) == {2: 10}
    again = OwnedShard(1, 7)
    assert rates.measure({1: 600, 2: 1200}, [again, TWO], 90.0) == {2: 5}
