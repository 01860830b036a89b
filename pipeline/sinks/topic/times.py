"""Check that a topic keeps the times of its records and does not stamp them with their arrival."""

from typing import Any

from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from pipeline.broker_client import BrokerClient, ask_one
from pipeline.errors import BadOption, NothingThere
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.errors import ErrorCode

TYPE_KEY = "message.timestamp.type"
_TOPIC = 2


def refuse_stamping(bootstrap: str, topic: str, security: ClientSecurity = IN_THE_CLEAR) -> None:
    """BadOption for a topic that would lose the times. NothingThere without it, BrokerRefused."""
    resource = DescribeConfigsResource(
        resource_type=_TOPIC, resource_name=topic, configuration_keys=[TYPE_KEY]
    )
    request = DescribeConfigsRequest(resources=[resource])

    def asked(client: BrokerClient) -> tuple[BrokerClient, Any]:
        return client, client.call(request).results[0]

    client, described = ask_one(bootstrap, asked, security)
    if described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NothingThere(f"the topic {topic!r} is not on {bootstrap}: make it first")
    client.check(
        described.error_code, f"settings of the topic {topic}",
        f"DESCRIBE_CONFIGS on the topic {topic} (not needed with allowLogAppendTime=true)",
    )  # fmt: skip
    if any(each.value == "LogAppendTime" for each in described.configs):
        raise BadOption(
            f"{topic} stamps records with their arrival and would lose the frame's times: "
            f"set {TYPE_KEY}=CreateTime there, or allowLogAppendTime=true here"
        )
