"""Names of the headers of dead letters, and of what is sent back.

Those that begin with `__dlq.errors.` are KIP-1191's, the others ours. A letter has the headers of
its record first, if it is a copy, then its own, which begin with that of the topic.
"""

from typing import Final

KAFKAS, OURS = "__dlq.errors.", "horolog.dlq."
TOPIC: Final = KAFKAS + "topic"
PARTITION: Final = KAFKAS + "partition"
OFFSET: Final = KAFKAS + "offset"
GROUP: Final = KAFKAS + "group"
DELIVERY_COUNT: Final = KAFKAS + "delivery.count"
MESSAGE: Final = KAFKAS + "message"
REASON: Final = OURS + "reason"
RECORD_TIME: Final = OURS + "record.time"
ARRIVAL_TIME: Final = OURS + "arrival.time"
MEMBER: Final = OURS + "member"
REDRIVEN_ARRIVAL: Final = "horolog.redriven.arrival.time"
"""Of a record that was sent back to a topic which stamps records by their arrival (LogAppendTime):
the arrival of the first time."""
