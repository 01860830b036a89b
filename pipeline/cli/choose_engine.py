"""The choice of `--engine`: processes of this machine, or Spark.

Each engine is imported when it is chosen, so that a job without Spark does not load it.
"""

from functools import partial

from pipeline.engine.engine import NATIVE, Engine


def choose_engine(name: str, job: str, *, master: str | None = None) -> Engine:
    """The engine of that name. Spark is opened when there is work for it.

    The work is Python's: Java only hands it out, so that it had better start quickly.
    """
    if name == NATIVE:
        from pipeline.engine.native import NativeEngine

        return NativeEngine()
    from pipeline.spark.engine import SparkEngine
    from pipeline.spark.session import open_session

    return SparkEngine(partial(open_session, f"horolog {job}", master=master, is_short=True))
