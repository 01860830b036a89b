"""Spark's face of the sources: `format("horolog")`. Planning and reading are elsewhere.

Spark calls these classes in Python processes of its own: planning on the driver's machine, reading
on the executors'. They hold options and plans, and nothing that is open.
"""

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pipeline.schemas import records_schema


class HorologSource(DataSource):
    """Records of topics, from log directories or from a broker."""

    @classmethod
    def name(cls) -> str:
        """As in `spark.read.format("horolog")`."""
        return "horolog"

    def schema(self) -> StructType:
        """The columns, unless the user asks for fewer by `.schema(...)`."""
        return from_arrow_schema(records_schema())
