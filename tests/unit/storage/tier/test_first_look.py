"""The first look of a process at a store that has many manifests of a partition."""

from collections.abc import Iterator

import pytest

from storage.tier.manifests.manifest import Change, render_delta
from storage.tier.manifests.reading import FULL_EVERY
from storage.tier.port import ObjectFacts
from tests.support.records.logs import append, make_durable
from tests.support.tier.tier_world import KEYS, TierWorld


class ListedWorld(TierWorld):
    """Counts the objects that the store lists."""

    listed = 0

    def count(self) -> None:
        before = self.store.list

        def counted(prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
            for each in before(prefix, after=after):
                self.listed += 1
                yield each

        self.store.list = counted  # type: ignore[method-assign]

    def copy_some(self, count: int) -> None:
        for _ in range(count):
            append(self.log, self.env.clock.now_ms(), value=b"x" * 100)
            self.log.roll()
            make_durable(self.log)
            self.copy_all()


@pytest.fixture
def world() -> ListedWorld:
    world = ListedWorld()
    world.copy_some(200)
    world.reopen()
    world.count()
    world.store.asked.clear()
    return world


def test_it_lists_no_manifest_before_the_known_one(world: ListedWorld) -> None:
    world.tiered.settle()
    assert world.tiered.manifest.number == 200
    assert world.listed <= 2
    assert world.store.asked["get"] <= 2


def test_it_takes_over_what_the_directory_does_not_know(world: ListedWorld) -> None:
    path = f"{world.log.files.path}/horolog-remote"
    known = world.env.fs.read_bytes(path)
    world.copy_some(3)
    after = world.tiered.manifest
    world.log.close()
    world.env.fs.write_atomically(path, known)
    world.open()
    world.listed = 0
    world.tiered.settle()
    assert world.tiered.manifest == after
    assert world.listed <= 5


def test_many_manifests_behind_the_known_one_are_not_read_one_by_one(world: ListedWorld) -> None:
    path = f"{world.log.files.path}/horolog-remote"
    known = world.env.fs.read_bytes(path)
    world.copy_some(3 * FULL_EVERY)
    after = world.tiered.manifest
    world.log.close()
    world.env.fs.write_atomically(path, known)
    world.open()
    world.store.asked.clear()
    world.tiered.settle()
    assert world.tiered.manifest == after
    assert world.store.asked["get"] <= FULL_EVERY + 1


def test_a_known_one_that_another_wrote_is_not_believed(world: ListedWorld) -> None:
    written = world.tiered.manifest._replace(writer="another")
    world.store.objects[KEYS.manifest(200)] = render_delta(written, Change())
    world.tiered.settle()
    assert world.listed >= 200
