"""Producer ids that one broker or its fleet gave out are given out by neither again."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from broker.fleet.catalog.rows import FleetFacts, TopicImport
from broker.fleet.committer import CommitStore
from broker.fleet.exchange.export import ExportSource, FleetExport
from broker.fleet.exchange.import_directory import DirectoryImport
from broker.topics.names import TRANSACTION_STATE
from broker.transactions.loading import producer_ids_in
from broker.transactions.transaction import Facts
from broker.transactions.transaction_records import transaction_key, transaction_value
from config.sealed_json import sealed
from config.store import ConfigStore
from protocol.records.builder import build_batch
from storage.directory.log_manager import LogManager
from storage.directory.producer_ids_file import AHEAD, FAR, FILE_NAME, parse
from storage.errors import CorruptCheckpoint
from storage.log.log import Log
from storage.posix import real_env
from storage.tier.port import ObjectStore
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.records.logs import append

LAST, NOW = 2**63 - 1, 1_700_000_000_000


class Quiet:
    """Progress that nobody sees."""

    def partitions(self, count: int) -> None: ...

    def partition(self, keys: object) -> None: ...


def ids_of(log: Log) -> Iterable[int]:
    return producer_ids_in(log, 1 << 16)


def directory(place: Path, *producers: int, transactional: Sequence[Facts] = ()) -> Path:
    """One of a broker that stood alone, which knows of these ids."""
    config = ConfigStore()
    logs = LogManager(real_env(), str(place), config.topic_config)
    logs.open_directory("cluster", 1)
    logs.load()
    written = logs.create_log("t", 0, UUID(int=1), config.topic_config("t"))
    for each in producers:
        told = {"producer_id": each, "producer_epoch": 0, "base_sequence": 0}
        append(written, NOW, **told)
    states = logs.create_log(TRANSACTION_STATE, 0, UUID(int=2), config.topic_config("t"))
    for at, facts in enumerate(transactional):
        record = (NOW, transaction_key(f"id-{at}"), transaction_value(facts.remembered()))
        states.append(memoryview(build_batch([record])), acks_all=True, leader_epoch=0)
    logs.close()
    return place


def given_out(place: Path, end: int) -> None:
    (place / FILE_NAME).write_text(json.dumps(sealed({"format": 1, "reserved_below": end})))


def ids_below(place: Path) -> int:
    store = cast("ObjectStore", None)  # no topic is known, so nothing is sent
    work = DirectoryImport(real_env(), store, str(place), ids_of)
    work.open(work.identity())
    try:
        order: TopicImport = work.copied(64, Quiet())
    finally:
        work.close()
    return order.producer_ids_below


def test_ids_that_no_log_remembers_are_not_given_out_again(tmp_path: Path) -> None:
    """The broker's own count: producers that have not written yet, and those that expired."""
    place = directory(tmp_path / "one", 1017)
    given_out(place, 5000)
    assert ids_below(place) == 5000


def test_without_a_count_ids_are_those_of_logs_and_transactions(tmp_path: Path) -> None:
    """As in a directory that a Kafka wrote: ids to come and ids of before are taken, too."""
    facts = Facts(producer_id=30, previous_producer_id=29, timeout_ms=1, updated_ms=1)
    ahead = Facts(producer_id=31, next_producer_id=4711, timeout_ms=1, updated_ms=1)
    place = directory(tmp_path / "one", 1017, transactional=[facts, ahead])
    assert ids_below(place) == 4712 + AHEAD
    assert ids_below(directory(tmp_path / "two", 5000, transactional=[facts])) == 5001 + AHEAD
    assert ids_below(directory(tmp_path / "three")) == 0


def test_an_id_that_a_client_made_up_leaves_room_for_others(tmp_path: Path) -> None:
    assert ids_below(directory(tmp_path / "one", 7, LAST)) == 8 + AHEAD
    place = directory(tmp_path / "two", 7)
    given_out(place, LAST)
    assert ids_below(place) == FAR


def test_a_count_that_cannot_be_read_is_no_count(tmp_path: Path) -> None:
    place = directory(tmp_path / "one", 7)
    given_out(place, 5000)
    (place / FILE_NAME).write_text((place / FILE_NAME).read_text().replace("5000", "1000"))
    with pytest.raises(CorruptCheckpoint):
        ids_below(place)


async def test_an_export_has_the_count_of_the_fleet(tmp_path: Path) -> None:
    rows = ModelCatalog(FleetFacts(UUID(int=1), "cluster", 4), lambda: NOW)
    await rows.producer_ids(7000)
    nowhere = cast("CommitStore", None), cast("ObjectStore", None)
    place = tmp_path / "one"
    await FleetExport(ExportSource(rows, *nowhere), real_env(), str(place)).run(Quiet())
    assert parse(FILE_NAME, (place / FILE_NAME).read_text()) == 7000
    assert ids_below(place) == 7000, "and back"
