"""The end of a command by SIGTERM: brokers, engines and networks of it end with it."""

import signal
import sys
from types import FrameType

STATUS = 128 + signal.SIGTERM


def ends_in_order() -> None:
    """From now on SIGTERM lets this process, and those it forks, leave its contexts as an error
    would; a second one does nothing more.
    """
    signal.signal(signal.SIGTERM, _leave)


def _leave(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(STATUS)
