"""Calls to a real store go wrong, and a broker is killed at them: a sample of `scripts/prove`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.tier.port import StoreError
from tests.support.clients.go_programs import BUILD_SECONDS
from tests.support.tier.fault_proxy import fault_proxy
from tests.support.tier.fault_ways import Way
from tests.support.tier.s3_calls import Call
from tests.support.tier.s3_server import S3Server, seaweedfs
from tests.support.tier.story_points import (
    Fault,
    Kill,
    Late,
    live_with,
    live_with_faults,
    live_with_kills,
)
from tests.support.tier.versity import versitygw, why_no_versitygw

# On a new machine the first of them builds a server.
pytestmark = pytest.mark.timeout(BUILD_SECONDS + 60)

MIB = 1024 * 1024
FAULTS = (
    {
        "put_new probe": Way.LOST_ANSWER,
        "put_new card": Way.LOST_ANSWER,
        "list picture": Way.NOT_S3,
        "put_new picture": Way.LOST_ANSWER,
        "put_file records": Way.HALF_ANSWER,
        "put_part records": Way.RESET_BEFORE,
        "put_file side": Way.SLOW_DOWN,
        "put_new manifest": Way.LOST_ANSWER,
        "get_range records": Way.OTHER_BYTES,
        "list all": Way.HALF_ANSWER,
        "delete records": Way.LOST_ANSWER,
    },
    {
        "put_new probe": Way.EXPIRED,
        "delete probe": Way.REFUSED,
        "list manifest": Way.OTHER_BYTES,
        "end_upload records": Way.LOST_ANSWER,
        "put_file records": Way.OTHER_BYTES,
        "put_new manifest": Way.OTHER_BYTES,
        "get_range records": Way.MISSING,
        "get_range side": Way.DRIPS,
    },
)
KILLS = (
    Kill(Call("put_new manifest", 2), is_after=True),
    Kill(Call("put_file side", 3), is_after=False),
    Kill(Call("put_new compacted manifest", 1), is_after=True),
    Kill(Call("put_file compacted side", 2), is_after=False),
)
LATE = ("put_new manifest", "put_new picture", "put_new compacted manifest")


@pytest.fixture(scope="module", params=["seaweedfs", "versitygw"])
def server(request: pytest.FixtureRequest) -> Iterator[S3Server]:
    if request.param == "versitygw" and (why := why_no_versitygw()) is not None:
        pytest.skip(why)
    with (seaweedfs if request.param == "seaweedfs" else versitygw)() as running:
        yield running


@pytest.mark.parametrize("size", [1000, 9 * MIB])
def test_a_store_refuses_what_was_spoilt_on_its_way(
    server: S3Server, tmp_path: Path, size: int
) -> None:
    with fault_proxy(server.address) as proxy:
        store = server.open(tmp_path.name, AWS_ENDPOINT_URL=f"http://{proxy.address}")
        ways = {"put_new all": Way.OTHER_BYTES, "put_part records": Way.OTHER_BYTES}
        proxy.fail(lambda call: ways.get(call.step))
        with pytest.raises(StoreError):
            store.put_new("a", bytes(size))
        with pytest.raises(StoreError):
            store.put_file("a.log", iter([bytes(9 * MIB)]), 9 * MIB)
        assert len(proxy.happened) > 1
    assert not list(server.open(tmp_path.name).list(""))


@pytest.mark.parametrize("ways", FAULTS)
def test_calls_that_go_wrong_cost_nothing(
    server: S3Server, tmp_path: Path, ways: dict[str, Way]
) -> None:
    faults = [Fault(Call(step, 1), way) for step, way in ways.items()]
    lived = live_with_faults(server, tmp_path / "data", faults)
    assert lived.played == len(faults)
    assert lived.failures > 0


def test_a_broker_that_is_killed_at_its_calls_loses_nothing(
    server: S3Server, tmp_path: Path
) -> None:
    lived = live_with_kills(server, tmp_path / "data", KILLS)
    assert lived.played == len(KILLS)


@pytest.mark.parametrize("step", LATE)
def test_a_call_that_the_store_does_after_the_next_start_costs_nothing(
    server: S3Server, tmp_path: Path, step: str
) -> None:
    lived = live_with(server, tmp_path / "data", Late(Call(step, 2)))
    assert lived.played == 1
