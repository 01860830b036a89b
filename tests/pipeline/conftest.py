"""One Spark session for all tests here, and one broker; both started when a test asks for them."""

import shutil
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session as `horolog spark` opens it, on two cores."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install '.[spark]'")
    from pipeline.session import open_session

    scratch = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.shuffle.partitions": "2",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's own, of its start and of its stop
        try:
            session = open_session(
                "horolog-tests", master="local[2]", settings=settings, is_short=True
            )
        except PipelineError as error:
            pytest.skip(error.message)
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
    shutil.rmtree(scratch, ignore_errors=True)
