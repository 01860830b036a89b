"""Settings of clients: what is taken, what is refused by its name, and that no secret is shown."""

import pytest

from broker.access.errors import BadSetting
from broker.access.settings import client_security

JAAS = 'org.apache.Some required username="al\\"ice" password=plain tokenauth=true;'
SCRAM = {"security.protocol": "sasl_ssl", "sasl.mechanism": "SCRAM-SHA-256"}


def test_a_login_is_read_from_jaas() -> None:
    made = client_security({**SCRAM, "sasl.jaas.config": JAAS, "group.id": "left alone"})
    assert made.login == ('al"ice', "plain")
    assert made.jaas["tokenauth"] == "true"
    assert made.user == 'User:al"ice'
    assert "group.id" not in made.settings


def test_nothing_is_shown() -> None:
    made = client_security({**SCRAM, "sasl.jaas.config": JAAS})
    assert "plain" not in f"{made!r}{made}"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"ssl.provider": "x"}, "kafka.ssl.provider is not taken here"),
        ({"sasl.kerberos.service.name": "x"}, "kafka.sasl.kerberos.service.name is not taken"),
        ({"security.protocol": "TLS"}, "kafka.security.protocol: 'TLS' is not one of"),
        ({**SCRAM, "sasl.mechanism": "GSSAPI"}, "kafka.sasl.mechanism: a listener with SASL"),
        (SCRAM, "kafka.sasl.jaas.config: has no username"),
        ({"ssl.truststore.type": "JKS"}, "kafka.ssl.truststore.type: JKS is not read: convert"),
        ({"ssl.keystore.key": "x"}, "kafka.ssl.keystore.key: goes together with"),
        ({"ssl.endpoint.identification.algorithm": "no"}, "https, or nothing"),
        ({"sasl.login.callback.handler.class": "my.Class"}, "no class is loaded by its name"),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER",
             "sasl.oauthbearer.token.endpoint.url": "http://provider/"},
            "kafka.sasl.oauthbearer.token.endpoint.url: file:///PATH",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_is_named(settings: dict[str, str], text: str) -> None:
    with pytest.raises(BadSetting) as refused:
        client_security(settings, lambda key: f"kafka.{key}")
    assert text in str(refused.value)
