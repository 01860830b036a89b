"""Sends objects of copies by the copier's process."""

import os
from typing import TYPE_CHECKING

from broker.tier.copier.book import AccountBook, enter
from broker.tier.copier.faults import error_of
from broker.tier.copier.process import CopierProcess
from storage.env import File
from storage.errors import DiskError
from storage.tier.carrying import Pace, Sent

if TYPE_CHECKING:
    from broker.tier.copier.line import CopierLine

SILENT_SECONDS = 120.0
"""Longest time between two packets: a request to the store has a limit of 30 s."""


class ProcessCarrier:
    """The `Carrier` of a broker. Used from any thread."""

    def __init__(self, copier: CopierProcess, account: AccountBook) -> None:
        """`account`: what the process asks of the store is counted there."""
        self._copier = copier
        self._account = account

    def send_file(self, key: str, file: File, size_bytes: int, pace: Pace) -> Sent:
        """As the port has it. CopierAway."""
        number = file.fileno()
        try:
            descriptor = os.dup(-1 if number is None else number)
        except OSError as error:
            raise DiskError(file.path, "send", str(error), error.errno or 0) from error
        try:
            return self._send(key, file.path, descriptor, size_bytes, pace)
        finally:
            os.close(descriptor)

    def send_bytes(self, key: str, data: bytes, pace: Pace) -> Sent:
        """As the port has it. CopierAway."""
        try:
            descriptor = os.memfd_create("horolog-copy", os.MFD_CLOEXEC)
        except OSError as error:
            raise DiskError(key, "send", str(error), error.errno or 0) from error
        try:
            _write(descriptor, key, data)
            return self._send(key, key, descriptor, len(data), pace)
        finally:
            os.close(descriptor)

    def _send(self, key: str, path: str, descriptor: int, size_bytes: int, pace: Pace) -> Sent:
        with self._copier.line(key) as line:
            line.send({"key": key, "path": path, "size": size_bytes}, [descriptor])
            return self._answer(line, pace)

    def _answer(self, line: "CopierLine", pace: Pace) -> Sent:
        while True:
            answer, _ = line.receive(SILENT_SECONDS)
            enter(answer["account"], self._account)
            match answer:
                case {"about": size_bytes}:
                    pace(size_bytes)
                    line.send({})
                case {"error": row}:
                    raise error_of(row)
                case {"crc": crc, "block_sums": sums}:
                    return Sent(crc, bytes.fromhex(sums))


def _write(descriptor: int, key: str, data: bytes) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise DiskError(key, "send", str(error), error.errno or 0) from error
