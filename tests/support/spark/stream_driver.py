"""A program of its own: archives topic `t` of a directory as a stream, until it is killed.

python -m tests.support.spark.stream_driver LOG_DIR OUT STATE
"""

import sys

from pipeline.spark.session import open_session


def main(log_dir: str, out: str, state: str) -> None:
    """Take what is there, some hundred records a batch."""
    session = open_session("killed", master="local[2]", is_short=True)
    source = session.readStream.format("horolog").options(
        log_dirs=log_dir, subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger="300"
    )
    query = (
        source.load()
        .select("partition", "offset", "value")
        .writeStream.format("parquet")
        .option("checkpointLocation", state)
        .trigger(availableNow=True)
        .start(out)
    )
    query.awaitTermination()
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
