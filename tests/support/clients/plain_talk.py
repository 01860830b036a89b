"""A client that says requests by the name of their API, from plain values, and notes what it said.

answer = await talk.ask("JoinGroup", 9, group_id="g", protocols=[{"name": "range"}])
"""

from typing import Any

from protocol.api import Api
from protocol.registry import apis
from protocol.schema import struct_of
from protocol.structs import MessageStruct, NullableStruct
from protocol.types import Array
from tests.support.clients.wire import AsyncWireClient

BY_NAME: dict[str, Api] = {api.name: api for api in apis().values()}


def request_of(name: str, version: int, **values: Any) -> Any:
    """A request of that version; what is inside of it as dictionaries and lists."""
    return _built(struct_of(BY_NAME[name].request, version), values)


def _built(struct: MessageStruct, values: dict[str, Any]) -> Any:
    wires = {part.name: part.subcon for part in struct.subcons}
    unknown = values.keys() - wires.keys()
    assert not unknown, f"{struct.cls.__name__} has no {unknown} in this version"
    return struct.cls(**{name: _value(wires[name], value) for name, value in values.items()})


def _value(wire: Any, value: Any) -> Any:
    if isinstance(wire, NullableStruct):
        wire = wire.struct
    if isinstance(wire, MessageStruct) and isinstance(value, dict):
        return _built(wire, value)
    if isinstance(wire, Array) and isinstance(value, list):
        return [_value(wire.element, each) for each in value]
    return value


class Talk:
    """One connection, the names of the APIs that it used, and whether answers are still to come."""

    def __init__(self, client: AsyncWireClient) -> None:
        self.client = client
        self.asked: set[str] = set()
        self.waits = False

    async def ask(self, name: str, version: int, **values: Any) -> Any:
        """The answer to a request."""
        self.asked.add(name)
        return await self.client.call(request_of(name, version, **values), version)

    async def say(self, name: str, version: int, **values: Any) -> None:
        """A request, whose answer nobody waits for here."""
        self.waits = True
        await self.client.send(request_of(name, version, **values), version)
