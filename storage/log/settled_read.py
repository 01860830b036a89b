"""Reads that wait until what they give was checked, and was brought here from the tier's store."""

from storage.files.file_slice import FetchData
from storage.log.log import Log


def read_settled(log: Log, offset: int, max_bytes: int, up_to: int) -> FetchData:
    """Batches from the one that holds `offset` to before `up_to`, the first one whole.

    No slice: there is none. Blocks, for as long as the store does. StorageError, CorruptLog;
    KafkaError outside of the log.
    """
    data = log.read(offset, max_bytes, up_to=up_to, min_one_batch=True)
    while data.unverified is not None:
        data.unverified.settle()
        data = log.read(offset, max_bytes, up_to=up_to, min_one_batch=True)
    return data
