"""Spark looks through its Python path for packages of such a name and registers what they hold.

Put this folder's parent on the Python path of Spark's driver, and `format("horolog")` is known
without a line of code: in SQL, in a Spark Connect server, in a declarative pipeline.
"""

from pipeline.spark.source import HorologSource as DefaultSource

__all__ = ["DefaultSource"]
