"""Users of the scene: their passwords, and connections as them by SASL PLAIN, to either broker."""

from tests.support.authorization import scene
from tests.support.authorization.survey import Connect
from tests.support.clients.plain_talk import request_of
from tests.support.clients.wire import WireClient, frame

TIMEOUT_SECONDS = 10


def password_of(user: str) -> str:
    """The password of a user of the scene."""
    return f"{user}-word"


def jaas() -> str:
    """The value of `sasl.jaas.config` that knows every user of the scene."""
    users = " ".join(f'user_{user}="{password_of(user)}"' for user in scene.PRINCIPALS)
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"


def by_password(port: int) -> Connect:
    """Connections to a port of this machine: a handshake of version 0, then a bare token."""

    def connected(user: str) -> WireClient:
        client = WireClient("127.0.0.1", port, timeout_seconds=TIMEOUT_SECONDS)
        answer = client.call(request_of("SaslHandshake", 0, mechanism="PLAIN"), 0)
        assert answer.error_code == 0, f"the handshake is answered {answer.error_code}"
        client.send_raw(frame(f"\0{user}\0{password_of(user)}".encode()))
        assert client.receive_frame() == b"", "the password is refused"
        return client

    return connected
