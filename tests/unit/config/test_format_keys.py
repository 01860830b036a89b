"""`message.format.version` and its kin, which Kafka 4 removed: what users of each are told."""

from pathlib import Path

import pytest

from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore

VERSION, DOWN = "message.format.version", "message.downconversion.enable"


def test_on_a_topic_the_format_is_refused_as_in_kafka_4_with_the_reason() -> None:
    store = ConfigStore(load(environment={}).layers)
    with pytest.raises(ConfigError, match="Kafka 4 removed it: records are stored in format 2"):
        store.prepare_topic("t", {VERSION: "0.10.2"})


@pytest.mark.parametrize("line", [f"log.{VERSION}=2.8", f"log.{VERSION}=0.9.0"])
def test_in_a_file_of_an_older_kafka_they_are_passed_over_with_the_reason(
    tmp_path: Path, line: str
) -> None:
    """Kafka 3 ignored the format as well; what clients read does not depend on it."""
    path = tmp_path / "server.properties"
    path.write_text(line + "\n")

    (ignored,) = load(file=str(path), environment={}).ignored

    assert "each client gets the format that its version reads" in str(ignored)


def test_conversion_can_be_turned_off_for_all_and_on_for_a_topic(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"log.{DOWN}=false\n")
    store = ConfigStore(load(file=str(path), environment={}).layers)
    assert not store.topic_config("t").message_downconversion_enable
    store.set_topic("t", {DOWN: "true"})
    assert store.topic_config("t").message_downconversion_enable
