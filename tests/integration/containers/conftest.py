"""Each test here runs the image in a container engine; without one it says why it does not."""

from pathlib import Path

import pytest

from tests.support.clients.containers import image, remove_leftovers, why_not

HERE = Path(__file__).parent
FIRST_BUILD_SECONDS = 1200  # the first test waits for the image


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(FIRST_BUILD_SECONDS))
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def built_image() -> str:
    reason = why_not()
    if reason is not None:
        pytest.skip(f"containers are not tested: {reason}")
    remove_leftovers()
    return image()
