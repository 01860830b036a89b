"""An abort whose marker lies segments behind the data is known to readers of that data."""

from storage.files.layout import TXN_INDEX, segment_name
from storage.index.txn_index import AbortedTxn, TxnIndex
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import LOG_PATH, append, make_durable, open_log


def test_an_abort_is_found_where_its_marker_lies() -> None:
    env = sim_env()
    log = open_log(env)
    for _ in range(3):
        append(log, 1000)
        log.roll()
    make_durable(log)
    aborted = AbortedTxn(9, 0, 2, 1)
    index = TxnIndex(env.fs, f"{LOG_PATH}/{segment_name(2, TXN_INDEX)}", 2)
    index.append(aborted)
    index.flush()
    assert log.search.aborted(0, 1) == [aborted]
    assert log.search.aborted(0, 3) == [aborted]
