"""Security settings of a client, for programs of every language: in the environment, or in a file.

Variables are `CLIENT_` and PROTOCOL, CA, MECHANISM, USER, PASSWORD or TOKEN.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLAIN, SCRAM, BEARER = "PLAIN", "SCRAM", "OAUTHBEARER"
_MODULES = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    SCRAM: "org.apache.kafka.common.security.scram.ScramLoginModule",
    BEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """One way to reach a broker; without a mechanism the client is nobody."""

    protocol: str
    authority: Path
    """File with the certificate that the client trusts."""
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    """A signed token, for OAUTHBEARER."""

    @property
    def name(self) -> str:
        """Protocol and mechanism."""
        return f"{self.protocol}-{self.mechanism}" if self.mechanism else self.protocol

    def environment(self) -> Mapping[str, str]:
        """For programs of our own."""
        return {
            "CLIENT_PROTOCOL": self.protocol,
            "CLIENT_CA": str(self.authority),
            "CLIENT_MECHANISM": self.mechanism,
            "CLIENT_USER": self.user,
            "CLIENT_PASSWORD": self.password,
            "CLIENT_TOKEN": self.token,
        }

    def write_properties(self, folder: Path) -> Path:
        """A file for Kafka's own tools."""
        lines = [f"security.protocol={self.protocol}"]
        if self.protocol.endswith("SSL"):
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.authority}"]
        if self.mechanism:
            lines += [f"sasl.mechanism={self.mechanism}", f"sasl.jaas.config={self._jaas()}"]
        if self.mechanism == BEARER:
            lines += self._token_lines(folder)
        path = folder / f"{self.name}.properties"
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        return path

    def _jaas(self) -> str:
        family = SCRAM if self.mechanism.startswith(SCRAM) else self.mechanism
        if family == BEARER:
            return f"{_MODULES[family]} required;"
        return f'{_MODULES[family]} required username="{self.user}" password="{self.password}";'

    def _token_lines(self, folder: Path) -> list[str]:
        path = folder / f"{self.name}.token"
        path.write_text(self.token)
        path.chmod(0o600)
        callbacks = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
        return [
            f"sasl.login.callback.handler.class={callbacks}",
            f"sasl.oauthbearer.token.endpoint.url=file://{path}",
        ]
