"""Errors of the pipeline, each with a name: what was wrong, where, what to do."""

# ruff: noqa: N818 - an error is named after what happened: DataLost, BadOption


class PipelineError(Exception):
    """Anything that a source, a sink or a job reports. Its text is all that a user sees."""

    EXIT_STATUS = 1

    def __init__(self, message: str) -> None:
        """One message alone, so that it crosses processes as it is."""
        super().__init__(message)
        self.message = message


class BadOption(PipelineError):
    """An option that is unknown, cannot be read, or contradicts another one."""

    EXIT_STATUS = 2


class NothingThere(PipelineError):
    """A directory, a topic or a partition that was asked for does not exist."""

    EXIT_STATUS = 2


class DataLost(PipelineError):
    """Offsets that were asked for are gone, or a topic was deleted and made again."""

    EXIT_STATUS = 3


class DamagedLog(PipelineError):
    """A batch whose bytes are wrong, below what the broker calls readable."""

    EXIT_STATUS = 3


class BrokerRefused(PipelineError):
    """A broker answered with an error, or with something that is no answer."""


class NotAllowed(BrokerRefused):
    """The user has not the right that is needed, or could not log in."""


class NotNow(BrokerRefused):
    """A broker cannot answer at this moment, as where a partition has no leader: ask again."""


class NoConnection(BrokerRefused):
    """No broker answers, or one no longer does: it may have ended, or been asked too much."""


class NoJava(PipelineError):
    """No Java runtime that Spark can use."""


class NoSpark(PipelineError):
    """PySpark, or what it needs, is not installed."""
