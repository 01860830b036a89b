"""A real Kafka with StandardAuthorizer and SASL PLAIN, and ways to connect to it as a principal."""

from pathlib import Path

from tests.support.authorization import scene
from tests.support.authorization.logins import by_password, jaas
from tests.support.authorization.survey import Connect
from tests.support.kafka.kafka_oracle import start_kafka
from tests.support.ports import free_ports
from tests.support.worlds.node_process import NodeProcess

LISTENER = "SASL_PLAINTEXT"


class GuardedKafka:
    """A node, and its SASL listener's address."""

    def __init__(self, data_dir: Path) -> None:
        plain, controller, self.port = free_ports(3)
        settings = _settings(plain, controller, self.port)
        self.node: NodeProcess = start_kafka(data_dir, settings, listen=f"127.0.0.1:{plain}")

    @property
    def connect(self) -> Connect:
        """A connection as a user."""
        return by_password(self.port)

    def stop(self) -> None:
        """Kills it: nobody looks at its files."""
        self.node.kill()


def _settings(plain: int, controller: int, guarded: int) -> dict[str, str]:
    client = f"PLAINTEXT://127.0.0.1:{plain},{LISTENER}://127.0.0.1:{guarded}"
    return {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": client,
        "listener.security.protocol.map": (
            f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{LISTENER}:{LISTENER}"
        ),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas(),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The node itself comes over the plain listener.
        "super.users": f"User:{scene.SUPER};User:ANONYMOUS",
        "group.consumer.session.timeout.ms": "60000",
        "delegation.token.secret.key": "a secret of tests",
    }
