"""Dead letters of a share group on their way back to the topics of their origin."""

from collections import Counter

from broker.groups.redrive.progress import RedriveProgress
from broker.groups.redrive.redrive_call import (
    RedriveAsked,
    RedriveCall,
    RedriveOutcome,
    RedriveParts,
    bounds_of,
)
from broker.partitions.partition import Partition
from broker.runtime.event_log import event
from protocol.errors import ErrorCode, KafkaError


class Redrive:
    """Sends letters back, for one group at a time only once."""

    def __init__(self, parts: RedriveParts) -> None:
        """Nothing is under way."""
        self.sent = 0
        """Letters that went back."""
        self.passed_over: Counter[str] = Counter()
        """Records of letters' topics that did not, by reason."""
        self.stops = 0
        """Calls that ended with an error."""
        self._parts = parts
        self._running: set[str] = set()

    def progress(self, group: str, letters: str) -> RedriveProgress:
        """The progress of a share group in a topic of letters."""
        return RedriveProgress(self._parts.groups, self._parts.clock, group, letters)

    async def bounds(self, letters: Partition) -> tuple[int, int]:
        """Log start and high watermark of a partition of letters, wherever it is led. KafkaError
        when its leader does not answer.
        """
        return await bounds_of(letters, self._parts.other_nodes)

    async def send_back(self, asked: RedriveAsked) -> RedriveOutcome:
        """Sends letters back within the bounds. KafkaError when it cannot begin:
        REBALANCE_IN_PROGRESS (27) while another call for this group is under way.
        """
        if asked.group in self._running:
            text = f"A redrive of {asked.group} is under way"
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, text)
        self._running.add(asked.group)
        try:
            call = RedriveCall(self._parts, asked, self.progress(asked.group, asked.letters.name))
            await call.run()
        finally:
            self._running.discard(asked.group)
        self._note(asked, call.outcome)
        return call.outcome

    def _note(self, asked: RedriveAsked, outcome: RedriveOutcome) -> None:
        self.sent += outcome.letters
        self.passed_over.update(outcome.passed_over)
        if outcome.letters or outcome.passed_over:
            event(
                "letters_redriven", group=asked.group, letters_topic=asked.letters.name,
                letters=outcome.letters, passed_over=outcome.passed_over.total(),
                principal=str(asked.sender.principal),
            )  # fmt: skip
        stopped = outcome.stopped
        if stopped is not None:
            self.stops += 1
            event(
                "redrive_stopped", "warning", group=asked.group,
                letters=f"{asked.letters.name}-{stopped.partition}", offset=stopped.offset,
                error=stopped.error.message,
            )  # fmt: skip
