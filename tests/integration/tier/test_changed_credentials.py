"""The store lets in other keys than before: a broker goes on with those of its file, unasked."""

from pathlib import Path

import pytest

from tests.integration.tier.test_tiered_broker import RECORDS as WRITTEN
from tests.integration.tier.test_tiered_broker import (
    make_topic,
    read_all,
    settings,
    until,
    wait_until_away,
    write,
)
from tests.support.clients.scraped import metric_of
from tests.support.tier.fault_proxy import FaultProxy, fault_proxy
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

OLD, NEW = ("AKIDTHEOLDONE", "planted/old"), ("AKIDTHENEWONE", "planted/new")
LAG = "horolog_tier_lag_segments"


def write_keys(file: Path, keys: tuple[str, str]) -> None:
    """As programs that renew keys do it."""
    lines = "[default]", f"aws_access_key_id = {keys[0]}", f"aws_secret_access_key = {keys[1]}"
    fresh = file.with_suffix(".new")
    fresh.write_text("\n".join(lines))
    fresh.replace(file)


def started(server: S3Server, proxy: FaultProxy, data: Path, file: Path) -> NodeProcess:
    variables = {
        "AWS_SHARED_CREDENTIALS_FILE": str(file),
        "AWS_ENDPOINT_URL": f"http://{proxy.address}",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with only_aws(variables):
        return start_broker(data, settings(server, data.parent.name))


def lag(broker: NodeProcess) -> float:
    return metric_of(broker, LAG)


@pytest.mark.parametrize("is_file_first", [True, False])
def test_a_broker_goes_on_with_the_new_ones(tmp_path: Path, *, is_file_first: bool) -> None:
    """The file may be changed before the store's keys are, or after."""
    folder, data, file = tmp_path / "store", tmp_path / "data", tmp_path / "credentials"
    folder.mkdir()
    write_keys(file, OLD)
    with seaweedfs(folder, OLD) as first, fault_proxy(first.address) as proxy:
        broker = started(first, proxy, data, file)
        make_topic(broker.bootstrap, "t")
        write(broker.bootstrap, "t")
        wait_until_away(broker.bootstrap, "t")
        until(lambda: lag(broker) == 0, "segments wait")
        if is_file_first:
            write_keys(file, NEW)
        first.stop()
        with seaweedfs(folder, NEW) as second:
            proxy.point_at(second.address)
            write(broker.bootstrap, "t", WRITTEN, 3000)
            if not is_file_first:
                until(lambda: "AccessKeyId" in (tmp_path / "data.log").read_text(), "no denial")
                until(lambda: lag(broker) > 0, "nothing waits")
                write_keys(file, NEW)
            until(lambda: lag(broker) == 0, "the new keys are not used")
            assert len(read_all(broker.bootstrap, "t", WRITTEN + 3000)) == WRITTEN + 3000
            broker.stop()
