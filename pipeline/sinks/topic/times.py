"""Check that a topic keeps the times of its records and does not stamp them with their arrival."""

from pipeline.broker_client import check, connect
from pipeline.errors import BadOption, NothingThere
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.errors import ErrorCode

TYPE_KEY = "message.timestamp.type"
_TOPIC = 2


def refuse_stamping(bootstrap: str, topic: str) -> None:
    """BadOption for a topic that would lose the times. NothingThere without it, BrokerRefused."""
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=[TYPE_KEY]
    )
    with connect(bootstrap) as client:
        described = client.call(DescribeConfigsRequest(resources=[resource])).results[0]
    if described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NothingThere(f"the topic {topic!r} is not on {bootstrap}: make it first")
    check(described.error_code, f"{bootstrap}, settings of the topic {topic}")
    if any(each.value == "LogAppendTime" for each in described.configs):
        raise BadOption(
            f"{topic} stamps records with their arrival and would lose the frame's times: "
            f"set {TYPE_KEY}=CreateTime there, or allowLogAppendTime=true here"
        )
