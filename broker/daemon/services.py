"""The services that periodic tasks are made of."""

from typing import Protocol

from broker.requests.services import HandlerServices
from broker.tasks.cleaner import Cleaner
from broker.tasks.retention import Retention
from broker.tasks.rolling import Rolling
from broker.tasks.services import TaskServices
from broker.tasks.test_clock_control import HeldTime


class PeriodicServices(HandlerServices, TaskServices, Protocol):
    """Used on the event loop."""

    retention: Retention
    rolling: Rolling
    cleaner: Cleaner
    held_time: HeldTime | None
