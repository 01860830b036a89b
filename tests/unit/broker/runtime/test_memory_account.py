"""The account of memory: shares, refusals in Kafka's words, and the limits it goes by."""

import pytest

from broker.runtime.memory_account import MemoryAccount, MemoryClass
from broker.runtime.memory_limit import cgroup_limits, ram_bytes, usable_memory
from protocol.errors import ErrorCode, KafkaError
from tests.support.disk.simdisk import SimFileSystem

MIB = 1 << 20


def system(**files: str) -> SimFileSystem:
    fs = SimFileSystem()
    for path, text in files.items():
        parts = path.split("/")
        for depth in range(2, len(parts)):
            parent = "/".join(parts[:depth])
            if not fs.exists(parent):
                fs.make_dir(parent)
        fs.write_atomically(path, text.encode())
    return fs


def test_a_share_is_refused_beyond_its_bound_and_others_are_not() -> None:
    account = MemoryAccount(100 * MIB)
    share = account.share(MemoryClass.GROUPS)
    account.charge(MemoryClass.GROUPS, share)
    with pytest.raises(KafkaError) as caught:
        account.charge(MemoryClass.GROUPS, 1)
    assert caught.value.code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "horolog.memory.max.bytes" in caught.value.message
    account.charge(MemoryClass.OFFSETS, 1)
    assert account.used(MemoryClass.GROUPS) == share
    assert account.refusals(MemoryClass.GROUPS) == 1
    account.release(MemoryClass.GROUPS, 1)
    account.charge(MemoryClass.GROUPS, 1)


def test_a_class_without_anything_takes_one_of_any_size() -> None:
    account = MemoryAccount(1000)
    account.charge(MemoryClass.LANES, 5000)
    assert not account.has_room(MemoryClass.LANES, 1)
    account.release(MemoryClass.LANES, 5000)
    account.charge(MemoryClass.LANES, 5000)


def test_the_shares_are_no_more_than_the_whole() -> None:
    account = MemoryAccount(100 * MIB)
    assert sum(map(account.share, MemoryClass)) <= account.limit_bytes
    assert all(account.share(kind) > 0 for kind in MemoryClass)


def test_more_is_never_released_than_was_charged() -> None:
    account = MemoryAccount(1000)
    account.charge(MemoryClass.GROUPS, 5)
    with pytest.raises(AssertionError):
        account.release(MemoryClass.GROUPS, 6)


@pytest.mark.parametrize(
    ("files", "limits"),
    [
        ({}, []),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n"}, []),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "536870912\n"}, [512 * MIB]),
        (
            {
                "/proc/self/cgroup": "0::/a/b\n",
                "/sys/fs/cgroup/a/memory.max": "1048576\n",
                "/sys/fs/cgroup/a/b/memory.max": "2097152\n",
            },
            [2 * MIB, MIB],
        ),
        (
            {
                "/proc/self/cgroup": "4:cpu:/\n3:hugetlb,memory:/docker/x\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "3145728\n",
            },
            [3 * MIB],
        ),
        (
            {
                "/proc/self/cgroup": "3:memory:/\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            [],
        ),
        ({"/proc/self/cgroup": "nonsense\n0::/../../x\n"}, []),
    ],
)
def test_limits_of_control_groups(files: dict[str, str], limits: list[int]) -> None:
    assert cgroup_limits(system(**files)) == limits


def test_the_least_of_all_limits_counts() -> None:
    fs = system(**{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "104857600\n"})
    assert usable_memory(fs, -1) == 70 * MIB
    assert usable_memory(fs, 10 * MIB) == 7 * MIB
    assert usable_memory(SimFileSystem(), -1) == int(ram_bytes() * 0.7)


def test_what_somebody_counts_for_himself_is_part_of_the_share() -> None:
    account, counted = MemoryAccount(1000), [0]
    account.watch(MemoryClass.LANES, lambda: counted[0])
    account.charge(MemoryClass.LANES, 50)
    counted[0] = 100
    assert account.used(MemoryClass.LANES) == 150
    assert not account.has_room(MemoryClass.LANES, 51)
    with pytest.raises(KafkaError):
        account.charge(MemoryClass.LANES, 51)
