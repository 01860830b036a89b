"""A frame is answered by its handler, or ends its connection with the right reason."""

import asyncio
import threading
from typing import Any

import pytest

from broker.runtime.connection_limits import CloseConnection
from broker.runtime.deferred import Deferred, LongAnswer
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer, RequestContext
from broker.server.dispatcher import Call, Dispatcher, Pending
from broker.server.route import Handler, Route
from protocol.apis import api_versions, find_coordinator, metadata
from protocol.apis.metadata import MetadataRequest, MetadataResponse
from protocol.codec import encode_bytes
from protocol.errors import ErrorCode
from protocol.headers import request_header_bytes
from tests.support.clients.wire import parse_response, request_frame

PEER = Peer(1, "127.0.0.1", 5000, "PLAINTEXT", "127.0.0.1", 9092)
API = metadata.API
VERSION = API.max_version


def answer(request: Any, context: RequestContext[Any]) -> MetadataResponse:
    return MetadataResponse(cluster_id=f"for {context.client_id}")


def make(handle: Handler = answer) -> tuple[Dispatcher, BrokerProbes]:
    probes = BrokerProbes(lambda: 0.0)
    served = [Route(API, handle, None), Route(api_versions.API, handle, None)]
    routes = {route.api.key: route for route in served}
    return Dispatcher(routes, probes, asyncio.get_running_loop()), probes


def frame_of(request: Any, version: int = VERSION) -> memoryview:
    return memoryview(request_frame(request, version, 7)[4:])


def joined(parts: Any) -> bytes:
    data = b"".join(parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    return data[4:]


@pytest.mark.parametrize("version", range(API.min_version, API.max_version + 1))
async def test_every_version_is_answered_in_its_own_form(version: int) -> None:
    dispatcher, probes = make()
    parts = dispatcher.dispatch(frame_of(MetadataRequest(), version), PEER)
    number, response = parse_response(API, version, joined(parts))
    assert number == 7
    if version >= 2:
        assert response.cluster_id == "for test"
    assert probes.latency[API.key].count == 1


async def test_a_deferred_answer_is_encoded_when_it_comes() -> None:
    deferred: Deferred[MetadataResponse] = Deferred()
    dispatcher, _ = make(lambda request, context: deferred)
    pending = dispatcher.dispatch(frame_of(MetadataRequest()), PEER)
    assert isinstance(pending, Pending)
    heard: list[Any] = []
    pending.listen(lambda parts, error: heard.append((parts, error)))
    assert heard == []
    deferred.resolve(MetadataResponse(cluster_id="late"))
    ((parts, error),) = heard
    assert error is None
    assert parse_response(API, VERSION, joined(parts))[1].cluster_id == "late"


async def test_a_long_answer_is_encoded_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    encode = Call.encode

    def told(call: Call, number: int, response: Any) -> Any:
        threads.append(threading.current_thread().name)
        return encode(call, number, response)

    monkeypatch.setattr(Call, "encode", told)
    answers: list[LongAnswer[MetadataResponse]] = []

    def later(request: Any, context: RequestContext[Any]) -> LongAnswer[MetadataResponse]:
        answers.append(LongAnswer())
        return answers[-1]

    dispatcher, probes = make(later)
    heard: list[Any] = []
    for is_gone in (False, True):
        pending = dispatcher.dispatch(frame_of(MetadataRequest()), PEER)
        assert isinstance(pending, Pending)
        pending.listen(lambda parts, error: heard.append((parts, error)))
        answers[-1].resolve(MetadataResponse(cluster_id="long"))
        if is_gone:
            pending.abandon()
        async with asyncio.timeout(20):
            while len(threads) < len(answers) or not (is_gone or heard):  # noqa: ASYNC110 - a thread
                await asyncio.sleep(0.01)
    await asyncio.sleep(0.02)
    assert len(threads) == 2
    assert threading.main_thread().name not in threads
    ((parts, error),) = heard
    assert error is None
    assert parse_response(API, VERSION, joined(parts))[1].cluster_id == "long"
    assert probes.latency[API.key].count == 1


async def test_a_coroutine_is_a_deferred_answer_too() -> None:
    async def slow(request: Any, context: RequestContext[Any]) -> MetadataResponse:
        await asyncio.sleep(0)
        return MetadataResponse(cluster_id="slow")

    dispatcher, _ = make(slow)
    pending = dispatcher.dispatch(frame_of(MetadataRequest()), PEER)
    assert isinstance(pending, Pending)
    heard: list[Any] = []
    pending.listen(lambda parts, error: heard.append((parts, error)))
    async with asyncio.timeout(5):
        while not heard:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert parse_response(API, VERSION, joined(heard[0][0]))[1].cluster_id == "slow"


async def test_the_answer_to_a_large_request_is_encoded_on_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: list[str] = []
    encode = Call.encode

    def told(call: Call, number: int, response: Any) -> Any:
        threads.append(threading.current_thread().name)
        return encode(call, number, response)

    async def later(request: Any, context: RequestContext[Any]) -> MetadataResponse:
        return MetadataResponse(cluster_id="long")

    monkeypatch.setattr(Call, "encode", told)
    dispatcher, _ = make(later)
    for count in (1, 5000):
        answered = asyncio.Event()
        topics = [metadata.MetadataRequestTopic(name=f"t{n:020}") for n in range(count)]
        pending = dispatcher.dispatch(frame_of(MetadataRequest(topics=topics)), PEER)
        assert isinstance(pending, Pending)
        pending.listen(lambda *_, event=answered: event.set())
        await asyncio.wait_for(answered.wait(), 20)
    assert [each == threading.main_thread().name for each in threads] == [True, False]


@pytest.mark.parametrize("ends", [True, False])
async def test_a_coroutine_that_changed_nothing_ends_with_its_client(ends: bool) -> None:
    done: list[str] = []

    async def slow(request: Any, context: RequestContext[Any]) -> MetadataResponse:
        context.ends_with_client = ends
        await asyncio.sleep(0.01)
        done.append("changed")
        return MetadataResponse()

    dispatcher, _ = make(slow)
    pending = dispatcher.dispatch(frame_of(MetadataRequest()), PEER)
    assert isinstance(pending, Pending)
    pending.listen(lambda *_: None)
    await asyncio.sleep(0)
    pending.abandon()
    await asyncio.sleep(0.05)
    assert done == ([] if ends else ["changed"])


async def test_requests_whose_answers_take_long_have_a_limit_of_memory() -> None:
    answers: list[LongAnswer[MetadataResponse]] = []

    def later(request: Any, context: RequestContext[Any]) -> LongAnswer[MetadataResponse]:
        answers.append(LongAnswer())
        return answers[-1]

    dispatcher, _ = make(later)
    topics = [metadata.MetadataRequestTopic(name=f"t{n:020}") for n in range(5000)]
    frame = frame_of(MetadataRequest(topics=topics))
    dispatcher.most_waiting_bytes = 25 * len(frame)
    pending = [dispatcher.dispatch(frame, PEER) for _ in range(2)]
    with pytest.raises(CloseConnection) as refused:
        dispatcher.dispatch(frame, PEER)
    assert refused.value.reason == "request_memory"
    assert answers[2].abandoned
    for each in pending:
        assert isinstance(each, Pending)
        each.listen(lambda *_: None)
    pending[0].abandon()
    pending.append(dispatcher.dispatch(frame, PEER))
    answers[1].resolve(MetadataResponse())
    await asyncio.sleep(0.05)
    assert dispatcher.waiting_bytes == 10 * len(frame)
    pending[2].abandon()
    pending[2].abandon()
    assert dispatcher.waiting_bytes == 0


async def test_a_large_change_without_room_does_not_begin() -> None:
    begun: list[str] = []

    async def change(request: Any, context: RequestContext[Any]) -> MetadataResponse:
        begun.append("change")
        await asyncio.Event().wait()
        return MetadataResponse()

    dispatcher, _ = make(change)
    topics = [metadata.MetadataRequestTopic(name=f"t{n:020}") for n in range(5000)]
    frame = frame_of(MetadataRequest(topics=topics))
    dispatcher.most_waiting_bytes = 15 * len(frame)
    assert isinstance(dispatcher.dispatch(frame, PEER), Pending)
    with pytest.raises(CloseConnection, match="share"):
        dispatcher.dispatch(frame, PEER)
    assert isinstance(dispatcher.dispatch(frame_of(MetadataRequest()), PEER), Pending)
    await asyncio.sleep(0)
    assert begun == ["change"] * 2


async def test_no_answer_means_no_parts() -> None:
    dispatcher, _ = make(lambda request, context: None)
    assert dispatcher.dispatch(frame_of(MetadataRequest()), PEER) is None


async def test_an_unexpected_error_ends_the_connection_and_is_counted() -> None:
    def broken(request: Any, context: RequestContext[Any]) -> None:
        raise ZeroDivisionError

    dispatcher, probes = make(broken)
    with pytest.raises(CloseConnection) as refusal:
        dispatcher.dispatch(frame_of(MetadataRequest()), PEER)
    assert refusal.value.reason == "internal_error"
    assert probes.crashes[API.key] == 1


async def test_an_unexpected_error_later_ends_the_connection_too() -> None:
    deferred: Deferred[MetadataResponse] = Deferred()
    dispatcher, probes = make(lambda request, context: deferred)
    pending = dispatcher.dispatch(frame_of(MetadataRequest()), PEER)
    assert isinstance(pending, Pending)
    heard: list[Any] = []
    pending.listen(lambda parts, error: heard.append((parts, error)))
    deferred.fail(ZeroDivisionError())
    assert heard[0][0] is None
    assert heard[0][1].reason == "internal_error"
    assert probes.crashes[API.key] == 1


@pytest.mark.parametrize("version", [-1, 5, 32767])
async def test_api_versions_of_an_unknown_version_gets_the_list_in_version_0(version: int) -> None:
    dispatcher, _ = make()
    api = api_versions.API
    header = api.key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True)
    frame = memoryview(header + (9).to_bytes(4, "big") + b"\xff\xff" + b"whatever")
    number, response = parse_response(api, 0, joined(dispatcher.dispatch(frame, PEER)))
    assert number == 9
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [each.api_key for each in response.api_keys] == [API.key, api.key]


@pytest.mark.parametrize(
    ("key", "version"), [(API.key, 99), (9999, 0), (find_coordinator.API.key, 3)]
)
async def test_other_unknown_requests_end_the_connection(key: int, version: int) -> None:
    dispatcher, _ = make()
    frame = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    with pytest.raises(CloseConnection) as refusal:
        dispatcher.dispatch(memoryview(frame), PEER)
    assert refusal.value.reason == "unsupported_version"


async def test_every_truncation_of_a_request_ends_the_connection() -> None:
    dispatcher, _ = make()
    header = request_header_bytes(API, VERSION, 7, "test")
    whole = header + encode_bytes(MetadataRequest(), VERSION)
    for size in range(len(whole)):
        with pytest.raises(CloseConnection) as refusal:
            dispatcher.dispatch(memoryview(whole[:size]), PEER)
        assert refusal.value.reason == "malformed"
