"""A broker that is asked everything by everybody: its answers, and to whom.

It takes any way to connect as a principal. What a request destroyed is made again before the next
one, by the super user, so that answers do not depend on the order of the questions.
"""

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from protocol.api import Api
from protocol.errors import ErrorCode
from protocol.registry import by_name
from tests.support.authorization import scene
from tests.support.authorization.asked import DESTROYING, UNASKED, Aim, aims, request_for
from tests.support.authorization.told import Shape, shape_of
from tests.support.clients.plain_talk import request_of
from tests.support.clients.served_apis import served_apis
from tests.support.clients.wire import WireClient, request_frame

Connect = Callable[[str], WireClient]
"""A connection whose principal is the user of that name."""
CLOSED: Shape = {"closed": True}
SILENT: Shape = {"silent": True}
FIRST_SERVED = {"Produce": 3}
"""Kafka announces versions 0 to 2 for old librdkafka's sake and closes on them (KIP-896)."""
READY_SECONDS = 60
SOON_SECONDS = 0.02
LIVE_MEMBER = "live-member"
SHARE = 2
"""Type of a key of the share coordinator."""


class Cell(NamedTuple):
    """A question: API, what it is aimed at, who asks, in which version."""

    api: str
    aim: str
    principal: str
    version: int


class Survey:
    """One broker under questions."""

    def __init__(self, connect: Connect, principals: Iterable[str] = scene.PRINCIPALS) -> None:
        """`principals` are those who ask; the super user makes the scene in any case."""
        self._connect = connect
        self._principals = frozenset(principals)
        self._open: dict[str, WireClient] = {}
        self._ids: dict[str, UUID] = {}
        self._hmacs: dict[str, bytes] = {}

    def close(self) -> None:
        """Closes every connection."""
        while self._open:
            self._open.popitem()[1].close()

    def versions(self) -> dict[str, range]:
        """The versions of each API that the broker has and ours serves."""
        found = self._super("ApiVersions", 3, client_software_name="s", client_software_version="1")
        theirs = {each.api_key: each for each in found.api_keys}
        both = {}
        for api in served_apis().values():
            if (row := theirs.get(api.key)) and api.name not in UNASKED:
                low = max(api.min_version, row.min_version, FIRST_SERVED.get(api.name, 0))
                both[api.name] = range(low, min(api.max_version, row.max_version) + 1)
        return {name: versions for name, versions in both.items() if versions}

    def prepare(self) -> None:
        """Makes the topics, groups and transactions; what is there already stays."""
        for topic in scene.TOPICS:
            self._topic(topic)
        for group in scene.GROUPS:
            self._until(partial(self._commit, group))
        for name in scene.TRANSACTIONS:
            self._until(partial(self._transaction, name))
        self._until(self._share_coordinator)
        self._live_member()

    def _share_coordinator(self) -> bool:
        """True once the topic of share groups' states is there."""
        topic_id = next(iter(self._ids.values()))
        text = urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
        asked = {"key_type": SHARE, "coordinator_keys": [f"{scene.GUARDED}:{text}:0"]}
        (found,) = self._super("FindCoordinator", 6, **asked).coordinators
        return bool(found.error_code == 0)

    def make_acls(self) -> None:
        """Makes the ACLs of the scene."""
        creations = [
            {
                "resource_type": acl.resource,
                "resource_name": acl.name,
                "resource_pattern_type": acl.pattern,
                "principal": f"User:{acl.principal}",
                "host": acl.host,
                "operation": acl.operation,
                "permission_type": acl.permission,
            }
            for acl in scene.acls()
        ]
        made = self._super("CreateAcls", 3, creations=creations)
        assert {each.error_code for each in made.results} == {0}, made

    def make_tokens(self) -> None:
        """Makes the delegation tokens, of a broker that has them on a listener with SASL."""
        for owner, renewers in scene.TOKENS.items():
            named = [{"principal_type": "User", "principal_name": each} for each in renewers]
            whose = {"owner_principal_type": "User", "owner_principal_name": owner}
            asked = {**whose, "renewers": named, "max_lifetime_ms": -1}
            made = self._super("CreateDelegationToken", 3, **asked)
            assert made.error_code == 0, made
            self._hmacs[owner] = bytes(made.hmac)
            self._until(partial(self._is_known, made.hmac))

    def answers(self, versions: Mapping[str, Iterable[int]]) -> Iterator[tuple[Cell, Shape]]:
        """The answer to every question, in these versions of each API."""
        apis = by_name()
        for name in sorted(versions, key=lambda each: apis[each].key):
            for version in versions[name]:
                yield from self._of_version(apis[name], version)

    def _of_version(self, api: Api, version: int) -> Iterator[tuple[Cell, Shape]]:
        seen: set[bytes] = set()
        for aim in aims(api, version):
            frame = request_frame(self._request(api, version, aim), version)
            if frame in seen:
                continue
            seen.add(frame)
            for principal in filter(self._principals.__contains__, scene.asking(api.name)):
                if aim.label == "live":
                    self._live_member()
                told = self._ask(api, version, aim, principal)
                yield Cell(api.name, aim.label, principal, version), told

    def _request(self, api: Api, version: int, aim: Aim) -> Any:
        return request_for(api, version, aim.with_ids(self._ids, self._hmacs))

    def _ask(self, api: Api, version: int, aim: Aim, principal: str) -> Shape:
        names = {topic_id: name for name, topic_id in self._ids.items()}
        try:
            answer = self._client(principal).call(self._request(api, version, aim), version)
        except TimeoutError:
            return self._lost(principal, SILENT)
        except ConnectionError:
            return self._lost(principal, CLOSED)
        told = shape_of(api, version, answer, names)
        if api.name == "CreateDelegationToken" and answer.error_code == 0:
            self._end_token(bytes(answer.hmac))
        if api.name in DESTROYING and '_code": 0' in json.dumps(told):
            self._restore()
        return told

    def _end_token(self, hmac: bytes) -> None:
        """A token that was only asked for goes; it takes a while until all of Kafka knows it."""
        end = partial(self._code_of_token, "Expire", hmac, expiry_time_period_ms=-1)
        self._until(lambda: end() == 0)
        self._until(lambda: end() == ErrorCode.DELEGATION_TOKEN_NOT_FOUND)

    def _is_known(self, hmac: bytes) -> bool:
        return self._code_of_token("Renew", hmac, renew_period_ms=-1) == 0

    def _code_of_token(self, verb: str, hmac: bytes, **values: Any) -> int:
        answer = self._super(f"{verb}DelegationToken", 2, hmac=hmac, **values)
        return int(answer.error_code)

    def _lost(self, principal: str, told: Shape) -> Shape:
        self._open.pop(principal).close()
        return told

    def _client(self, principal: str) -> WireClient:
        if principal not in self._open:
            self._open[principal] = self._connect(principal)
        return self._open[principal]

    def _super(self, name: str, version: int, **values: Any) -> Any:
        return self._client(scene.SUPER).call(request_of(name, version, **values), version)

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not done():
            assert time.monotonic() < deadline, "the broker does not make the scene"
            time.sleep(SOON_SECONDS)

    def _restore(self) -> None:
        for topic in (scene.DOOMED, scene.OPEN_DOOMED):
            self._topic(topic)
            self._until(partial(self._commit, topic))

    def _topic(self, name: str) -> None:
        """Makes a topic that is missing; its id is the controller's word: brokers follow later."""
        wanted = {"name": name, "num_partitions": 1, "replication_factor": 1}
        (made,) = self._super("CreateTopics", 7, topics=[wanted], timeout_ms=9000).topics
        assert made.error_code in {0, ErrorCode.TOPIC_ALREADY_EXISTS}, made
        if made.error_code == 0:
            self._ids[name] = made.topic_id
        self._until(partial(self._is_led, name))

    def _is_led(self, name: str) -> bool:
        asked = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        (told,) = self._super("Metadata", 12, **asked).topics
        if told.error_code != 0 or [part.error_code for part in told.partitions] != [0]:
            return False
        return bool(self._ids.setdefault(name, told.topic_id) == told.topic_id)

    def _commit(self, group: str) -> bool:
        """An offset of a topic of the group's own name, by nobody's member."""
        asked = {"coordinator_keys": [group], "key_type": 0}
        self._super("FindCoordinator", 4, **asked)
        offset = {"partition_index": 0, "committed_offset": 0}
        topics = [{"name": group, "partitions": [offset]}]
        who = {"group_id": group, "generation_id_or_member_epoch": -1}
        told = self._super("OffsetCommit", 8, **who, topics=topics)
        return bool(told.topics[0].partitions[0].error_code == 0)

    def _transaction(self, name: str) -> bool:
        self._super("FindCoordinator", 4, coordinator_keys=[name], key_type=1)
        asked = {"transactional_id": name, "transaction_timeout_ms": 60_000}
        return bool(self._super("InitProducerId", 4, **asked).error_code == 0)

    def _live_member(self) -> None:
        def joined() -> bool:
            told = self._super(
                "ConsumerGroupHeartbeat", 1, group_id=scene.LIVE, member_id=LIVE_MEMBER,
                member_epoch=0, rebalance_timeout_ms=30_000, topic_partitions=[],
                subscribed_topic_names=[scene.GUARDED],
            )  # fmt: skip
            return bool(told.error_code == 0)

        self._until(joined)
