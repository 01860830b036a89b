"""Ends of records that wait for their dead letters, of one share partition.

First the letters are durable, then the end is stored; a crash in between repeats letters and loses
no record. What fails is tried again, later each time: until then nobody gets the records, and they
are not finished. A group that wants no letters any more gives up without them.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

from broker.partitions.partition import Partition
from broker.runtime.deadlines import Deadline, Deadlines
from broker.runtime.deferred import Deferred
from broker.runtime.event_log import event
from broker.share.letters.dead_letters import DeadLetters
from broker.share.states import GivenUp, LetterWrite
from config.resources.group import GroupConfig
from protocol.errors import ErrorCode, KafkaError

FIRST_RETRY_MS, LAST_RETRY_MS = 1000, 300_000


class LetteredRecords(Protocol):
    """Records of a share partition, as these jobs end them."""

    partition: Partition

    @property
    def group(self) -> str:
        """The group."""

    @property
    def settings(self) -> GroupConfig:
        """Settings of the group."""

    def lettered(self, write: LetterWrite) -> Deferred[None]:
        """Stores the end of records whose letters are durable. Fails, and the records wait on."""


class _Job:
    """One write, and who waits for it."""

    def __init__(self, write: LetterWrite) -> None:
        self.write = write
        self.answer: Deferred[None] = Deferred()
        self.deadline = Deadline()
        self.tries = 0
        self.has_letters = False


class LetterJobs:
    """All jobs of one share partition. Used from the event loop only."""

    def __init__(
        self,
        records: LetteredRecords,
        letters: DeadLetters,
        deadlines: Deadlines,
        idle: Callable[[], None],
    ) -> None:
        """No job; `idle` is called after the last one."""
        self._records = records
        self._letters = letters
        self._deadlines = deadlines
        self._idle = idle
        self._jobs: set[_Job] = set()

    def __len__(self) -> int:
        """Number of jobs that are not done."""
        return len(self._jobs)

    def begin(self, writes: list[LetterWrite]) -> list[Deferred[None]]:
        """Begins jobs, which empties the list. An answer fails with the first attempt that does."""
        jobs = [_Job(write) for write in writes]
        writes.clear()
        self._jobs.update(jobs)
        for job in jobs:
            self._try(job)
        return [job.answer for job in jobs]

    def cancel(self) -> None:
        """Nobody reads here any more: the records are as they are stored."""
        jobs, self._jobs = self._jobs, set()
        for job in jobs:
            job.deadline.cancel()
            if not job.answer.settled:
                job.answer.fail(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _try(self, job: _Job) -> None:
        records, settings = self._records, self._records.settings
        if job not in self._jobs:
            return
        if job.has_letters or not settings.errors_deadletterqueue_topic_name:
            self._store(job)
            return
        given_up: list[GivenUp] = job.write.letters
        sent = self._letters.send(records.partition, records.group, given_up, settings)
        sent.listen(partial(self._sent, job))

    def _sent(self, job: _Job, _: None, error: BaseException | None) -> None:
        if error is None:
            job.has_letters = True
            self._store(job)
        else:
            self._failed(job, error)

    def _store(self, job: _Job) -> None:
        if job in self._jobs:
            self._records.lettered(job.write).listen(partial(self._stored, job))

    def _stored(self, job: _Job, _: None, error: BaseException | None) -> None:
        if error is not None:
            self._failed(job, error)
            return
        self._jobs.discard(job)
        if not job.answer.settled:
            job.answer.resolve(None)
        if not self._jobs:
            self._idle()

    def _failed(self, job: _Job, error: BaseException) -> None:
        if job not in self._jobs:
            return
        first = job.write.letters[0]
        event(
            "dead_letter_failed", "warning",
            share=f"{self._records.group}:{self._records.partition!r}", offset=first.first,
            reason=first.reason, error=error,
        )  # fmt: skip
        if not job.answer.settled:
            text = f"No dead letter could be written: {error}"
            job.answer.fail(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text))
        wait_ms = min(FIRST_RETRY_MS << min(job.tries, 20), LAST_RETRY_MS)
        job.tries += 1
        job.deadline.callback = partial(self._try, job)
        self._deadlines.set(job.deadline, wait_ms)
