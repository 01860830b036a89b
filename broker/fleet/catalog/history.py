"""The history of a database: a restore to a moment, or a standby that takes over, begins another.

Epochs, lives, versions and producer ids that were given out since may be missing in the rows then,
and would be given out once more: two leaders would have one epoch, and the disk of one of them
records that the other's commits do not have. So no statement of a broker is done before the rows
go by the present history. It cannot change while a connection lasts.
"""

from broker.fleet.catalog.servers import Connection
from broker.runtime.event_log import event

FOLLOW = "SELECT follow_history_v1()"


async def follow_history(connection: Connection) -> None:
    """Has the rows go by the history of this connection's database. Errors as of the library."""
    if await connection.fetchval(FOLLOW):
        event("fleet_database_restored", "error")
