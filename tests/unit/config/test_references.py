"""References in place of secrets: Kafka's syntax and providers, and no value is ever shown."""

from pathlib import Path
from typing import NamedTuple

import pytest

from broker.daemon.serve import _exposed
from config.errors import ConfigError
from config.references import References
from config.sources import load
from config.store import ConfigStore

SECRET = "hunter2-of-the-file"
PACKAGE = "org.apache.kafka.common.config.provider"


class Place(NamedTuple):
    """A directory with secrets."""

    path: Path

    @property
    def properties(self) -> Path:
        return self.path / "secrets.properties"

    def load(self, *lines: str, environment: dict[str, str] | None = None) -> ConfigStore:
        file = self.path / "server.properties"
        file.write_text("\n".join(lines) + "\n")
        return ConfigStore(load(environment=environment or {}, file=str(file)).layers)

    def refusal(self, *lines: str, environment: dict[str, str] | None = None) -> str:
        with pytest.raises(ConfigError) as refused:
            self.load(*lines, environment=environment)
        assert SECRET not in str(refused.value)
        return str(refused.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.properties.write_text(f"password={SECRET}\nretention=1000\nname=part\n")
    (tmp_path / "password").write_text(f"{SECRET}\n")
    for file in tmp_path.iterdir():
        file.chmod(0o600)
    return place


@pytest.mark.parametrize(
    "reference",
    ["${file:{at}/secrets.properties:password}", "${dir:{at}:password}",
     "${directory:{at}:password}", "${env:THE_PASSWORD}"],
)  # fmt: skip
def test_the_value_counts_and_the_reference_is_shown(place: Place, reference: str) -> None:
    reference = reference.replace("{at}", str(place.path))
    store = place.load(
        f"listener.name.a.ssl.key.password={reference}",
        "listeners=A://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map=A:SSL,PLAINTEXT:PLAINTEXT",
        "ssl.keystore.location=x.pem",
        f"horolog.http.token.file={reference}",
        environment={"THE_PASSWORD": SECRET},
    )
    assert store.broker_config.listener_tls["A"].key_password == SECRET
    assert store.broker_config.horolog_http_token_file == SECRET
    names = ["listener.name.a.ssl.key.password", "horolog.http.token.file"]
    shown = {each.name: each for each in store.describe_broker(names=names)}
    assert shown[names[0]].value is None
    assert shown[names[0]].sensitive
    assert shown[names[1]].value == reference
    assert [each.value for each in shown[names[1]].synonyms] == [reference, ""]
    assert SECRET not in repr(shown)


def test_references_stand_within_a_text_and_numbers_are_theirs(place: Place) -> None:
    at = place.properties
    store = place.load(
        f"log.retention.ms=${{file:{at}:retention}}",
        f"cluster.id=one-${{file:{at}:name}}-${{file:{at}:name}}",
        "horolog.http.token.file=${other:x:y}",
    )
    assert store.topic_defaults.retention_ms == 1000
    assert store.broker_config.cluster_id == "one-part-part"
    (entry,) = store.describe_broker(names=["log.retention.ms"])
    assert entry.value == f"${{file:{at}:retention}}"


def test_a_secret_that_does_not_fit_is_not_quoted(place: Place) -> None:
    text = place.refusal(f"log.retention.ms=${{file:{place.properties}:password}}")
    assert f"server.properties:1: log.retention.ms: the value of ${{file:{place.properties}" in text


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("${file:/no/such/file:key}", "/no/such/file cannot be read: No such file"),
        ("${file:{at}/secrets.properties:no}", "has no key of this name"),
        ("${file:alone}", "a path and a name with a colon between are needed"),
        ("${dir:{at}:no}", "cannot be read"),
        ("${dir:{at}:../etc}", "a path and a name"),
        ("${env:NOT_THERE}", "no such environment variable"),
    ],
)
def test_what_is_not_there_is_refused_with_its_place(
    place: Place, reference: str, words: str
) -> None:
    text = place.refusal("horolog.http.token.file=" + reference.replace("{at}", str(place.path)))
    assert "server.properties:1: horolog.http.token.file: ${" in text
    assert words in text


def test_providers_are_declared_as_for_kafka(place: Place) -> None:
    store = place.load(
        "config.providers=mine,vars",
        f"config.providers.mine.class={PACKAGE}.FileConfigProvider",
        f"config.providers.mine.param.allowed.paths=/else,{place.path}",
        f"config.providers.vars.class={PACKAGE}.EnvVarConfigProvider",
        "config.providers.vars.param.allowlist.pattern=THE_.*",
        f"horolog.http.token.file=${{mine:{place.properties}:name}}",
        "cluster.id=${vars:THE_NAME}",
        environment={"THE_NAME": "x"},
    )
    assert store.broker_config.horolog_http_token_file == "part"
    assert store.broker_config.cluster_id == "x"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["config.providers=a", "config.providers.a.class=com.evil.Loader"], "no class is loaded"),
        (["config.providers=a"], "config.providers.a.class: no class is loaded"),
        (["config.providers.a.class=x"], "config.providers does not name this provider"),
        (
            ["config.providers=a", f"config.providers.a.class={PACKAGE}.EnvVarConfigProvider",
             "config.providers.a.param.allowed.paths=/"],
            "has no such parameter",
        ),
        (
            ["config.providers=a", f"config.providers.a.class={PACKAGE}.EnvVarConfigProvider",
             "config.providers.a.param.allowlist.pattern=THE_.*", "cluster.id=${a:HOME}"],
            "allowlist.pattern does not allow",
        ),
        (
            ["config.providers=a", f"config.providers.a.class={PACKAGE}.FileConfigProvider",
             "config.providers.a.param.allowed.paths=/run/secrets",
             "cluster.id=${a:/run/secrets/../x:y}"],
            "allowed.paths does not allow",
        ),
        (
            ["config.providers=a", f"config.providers.a.class={PACKAGE}.FileConfigProvider",
             "config.providers.a.param.allowed.paths=/run/secrets",
             "cluster.id=${a:/run/secrets-of-others/x:y}"],
            "allowed.paths does not allow",
        ),
    ],
)  # fmt: skip
def test_providers_that_are_not_known_are_refused(
    place: Place, lines: list[str], words: str
) -> None:
    assert words in place.refusal(*lines, environment={"HOME": "/root"})


def test_with_declared_providers_the_others_are_text(place: Place) -> None:
    store = place.load(
        "config.providers=a",
        f"config.providers.a.class={PACKAGE}.EnvVarConfigProvider",
        "horolog.http.token.file=${env:HOME}",
        environment={"HOME": "/root"},
    )
    assert store.broker_config.horolog_http_token_file == "${env:HOME}"


@pytest.mark.parametrize("from_reference", [False, True])
def test_a_secret_that_others_can_read_is_refused(place: Place, *, from_reference: bool) -> None:
    value = f"${{file:{place.properties}:password}}" if from_reference else SECRET
    lines = [f"ssl.key.password={value}"]
    file = place.properties if from_reference else place.path / "server.properties"
    place.properties.chmod(0o644)
    (place.path / "server.properties").write_text("")
    (place.path / "server.properties").chmod(0o600 if from_reference else 0o644)
    text = place.refusal(*lines)
    assert f"ssl.key.password is a secret, and every user of this machine can read {file}" in text
    assert f"chmod o= {file}" in text
    file.chmod(0o640)
    assert place.load(*lines)


@pytest.mark.parametrize("value", ["hunter2", "${env:THE_PASSWORD}", ""])
def test_a_secret_on_the_command_line_is_noticed(value: str) -> None:
    flags = [f"ssl.key.password={value}", "num.partitions=3"]
    loaded = load(flags=flags, environment={"THE_PASSWORD": SECRET})
    assert _exposed(loaded) == (["ssl.key.password"] if value == "hunter2" else [])


def test_a_request_cannot_read_files_of_the_broker(place: Place) -> None:
    store = ConfigStore()
    reference = f"${{file:{place.properties}:retention}}"
    with pytest.raises(ConfigError):
        store.prepare_broker("1", {"log.retention.ms": reference})


def test_hostile_text_is_bounded() -> None:
    references = References({}, lambda _: "", {})
    text = "${" * 50_000 + "file:" * 10_000
    assert references.resolve(text).text == text
