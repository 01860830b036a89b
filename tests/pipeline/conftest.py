"""One Spark session for all tests here, and one broker; both started when a test asks for them."""

import shutil
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from pipeline.errors import PipelineError
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAR = str(2**63 - 1)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session as `horolog spark` opens it, on two cores."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed: pip install '.[spark]'")
    from pipeline.spark.session import open_session

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


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    """A broker whose data directory lies beside it, under `data`."""
    data_dir = tmp_path_factory.mktemp("broker") / "data"
    settings = {"log.initial.task.delay.ms": "86400000", "log.message.timestamp.after.max.ms": FAR}
    with start_broker(data_dir, settings) as running:
        running.facts["data_dir"] = str(data_dir)
        yield running


@pytest.fixture(scope="session")
def admin(node: NodeProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": node.bootstrap})
