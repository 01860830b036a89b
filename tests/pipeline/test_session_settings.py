"""What a Spark session is made with: Spark's own configuration goes before ours, where it may."""

from pathlib import Path

import pytest

from pipeline.errors import BadOption
from pipeline.spark.session import NEEDED, SHORT_COMMAND, session_settings


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return tmp_path / "spark-defaults.conf"


def test_what_the_configuration_says_stays(defaults: Path) -> None:
    assert session_settings({}, is_short=False)["spark.driver.memory"] == "1g"
    defaults.write_text(
        "# ours\nspark.driver.memory 4g\nspark.sql.session.timeZone=Europe/Berlin\n"
        "spark.driver.extraJavaOptions -Da=b\n"
    )
    found = session_settings({"spark.log.level": "INFO"}, is_short=True)
    assert "spark.driver.memory" not in found
    assert "spark.driver.extraJavaOptions" not in found
    assert found["spark.executor.extraJavaOptions"] == SHORT_COMMAND
    assert found["spark.log.level"] == "INFO"
    assert "spark.master" not in found
    assert found.items() >= NEEDED.items(), "answers depend on these"


def test_a_configuration_that_cannot_be_read_is_told(defaults: Path) -> None:
    defaults.write_text("spark.driver.memory \\u12\n")
    with pytest.raises(BadOption, match="line 1"):
        session_settings({}, is_short=False)


def test_spark_is_quiet_unless_logging_is_configured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    options = session_settings({}, is_short=True)["spark.driver.extraJavaOptions"].split()
    (place,) = (each.partition("=file:")[2] for each in options if "log4j2" in each)
    assert Path(place).is_file()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert "log4j2" not in session_settings({}, is_short=True)["spark.driver.extraJavaOptions"]
