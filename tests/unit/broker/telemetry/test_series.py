"""Series of clients: counted, bounded, replaced, gone."""

from uuid import UUID

from broker.telemetry.points import COUNTER, GAUGE, MetricPoint
from broker.telemetry.series import MOST_OF_A_CLIENT, ClientSeries

A, B = UUID(int=10), UUID(int=11)


def made(
    name: str, value: float = 1.0, *, of: UUID = A, kind: str = GAUGE, n: int = 0
) -> MetricPoint:
    labels = (("client_instance_id", str(of)), ("n", str(n)))
    return MetricPoint(name, name, kind, labels, value, is_delta=kind == COUNTER)


def shown(series: ClientSeries) -> dict[tuple[str, str, str], float]:
    """Values by name, client and number."""
    found = {
        (name, labels[0][1], labels[1][1]): value
        for name, family in series.families()
        for labels, value in family.values.items()
    }
    assert series.count == len(found)
    return found


def test_changes_add_up_and_gauges_are_replaced() -> None:
    series = ClientSeries(100)
    for value in (2.0, 3.0):
        series.take(A, [made("c", value, kind=COUNTER), made("g", value)], ends_ms=1000)
    assert shown(series) == {("c", str(A), "0"): 5.0, ("g", str(A), "0"): 3.0}


def test_a_series_that_three_pushes_leave_out_is_gone() -> None:
    series = ClientSeries(100)
    series.take(A, [made("g"), made("h")], 1000)
    for _ in range(2):
        series.take(A, [made("g")], 1000)
        assert len(shown(series)) == 2
    series.take(A, [made("g")], 1000)
    assert list(shown(series)) == [("g", str(A), "0")]
    assert [name for name, _ in series.families()] == ["g"]


def test_series_end_with_their_client_and_others_stay() -> None:
    series = ClientSeries(100)
    series.take(A, [made("g")], 1000)
    series.take(B, [made("g", of=B)], 2000)
    series.expire(999)
    assert len(shown(series)) == 2
    series.expire(1000)
    assert list(shown(series)) == [("g", str(B), "0")]
    series.leave(B, 5000)
    series.expire(1999)
    assert shown(series), "its end comes no later because it left"
    series.leave(B, 1999)
    series.expire(1999)
    assert shown(series) == {}


def test_a_client_that_pushes_again_stays() -> None:
    series = ClientSeries(100)
    series.take(A, [made("c", kind=COUNTER)], 1000)
    series.leave(A, 500)
    series.take(A, [made("c", kind=COUNTER)], 1500)
    series.expire(1000)
    assert shown(series) == {("c", str(A), "0"): 2.0}


def test_all_series_have_one_bound_and_each_client_one() -> None:
    series = ClientSeries(MOST_OF_A_CLIENT + 5)
    series.take(A, [made("g", n=n) for n in range(MOST_OF_A_CLIENT + 3)], 1000)
    assert series.dropped == {"client_limit": 3}
    series.take(B, [made("g", of=B, n=n) for n in range(9)], 2000)
    assert series.dropped == {"client_limit": 3, "limit": 4}
    assert len(shown(series)) == MOST_OF_A_CLIENT + 5
    series.take(B, [made("g", 7.0, of=B, n=0)], 2000)
    assert shown(series)["g", str(B), "0"] == 7.0, "one that is there goes on"
    series.expire(1000)
    series.take(B, [made("g", of=B, n=n) for n in range(9)], 2000)
    assert len(shown(series)) == 9, "there is room again"


def test_a_name_has_one_kind() -> None:
    series = ClientSeries(100)
    series.take(A, [made("x_total", 2.0, kind=COUNTER)], 1000)
    series.take(B, [made("x_total", 9.0, of=B)], 2000)
    assert series.dropped == {"type": 1}
    assert shown(series) == {("x_total", str(A), "0"): 2.0}
    series.expire(1000)
    series.take(B, [made("x_total", 9.0, of=B)], 2000)
    assert shown(series) == {("x_total", str(B), "0"): 9.0}


def test_clients_without_series_take_no_memory() -> None:
    """Whoever asks for a client instance may push nothing for it, as often as it likes."""
    series = ClientSeries(100)
    for number in range(1000):
        series.take(UUID(int=number), [], ends_ms=1000)
    series.take(A, [made("g")], ends_ms=1000)
    for _ in range(3):
        series.take(A, [], ends_ms=1000)
    assert not series._clients
    assert shown(series) == {}
