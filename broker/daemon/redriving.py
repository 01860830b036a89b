"""The redrive of dead letters, made of the services of a broker."""

from broker.groups.redrive.redrive import Redrive
from broker.groups.redrive.redrive_call import RedriveParts
from broker.server.services import bound


def made_redrive(services: object) -> Redrive:
    """The redrive; AttributeError for a service that is not there yet."""
    return Redrive(bound(RedriveParts, services))
