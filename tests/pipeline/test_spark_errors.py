"""What Spark says, in a line of ours: packages that lack, errors that were raised, no master."""

import pytest

from pipeline.spark.errors import ExecutorLacks, SparkFailed, named

ABORTED = """Job aborted due to stage failure: Task 1 in stage 2.0 failed 4 times, most recent \
failure: Lost task 1.3 in stage 2.0 (TID 7) (10.0.0.2 executor 1): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/work/app/0/pyspark/worker.py", line 1227, in main
    func, profiler, deserializer, serializer = read_udfs(pickleSer, infile, eval_type)
{}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(Runner.java)
"""
NO_MASTER = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'no'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala)
"""


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        (ABORTED.format("ModuleNotFoundError: No module named 'crc32c'"),
         ExecutorLacks, "no package 'crc32c': install"),
        (ABORTED.format("pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in "
                        "worker has different version: 3.9 than that in driver: 3.11."),
         ExecutorLacks, "3.9 than that in driver: 3.11. Set PYSPARK_PYTHON"),
        (ABORTED.format("ValueError: not so"), SparkFailed, "Spark: ValueError: not so"),
        (NO_MASTER, SparkFailed, "Spark: Could not parse Master URL: 'no'"),
        ("", SparkFailed, "it gave no reason"),
    ],
)  # fmt: skip
def test_a_page_of_java_becomes_a_line(text: str, kind: type[Exception], said: str) -> None:
    error = named(text)
    assert type(error) is kind
    assert said in error.message
    assert "\n" not in error.message
