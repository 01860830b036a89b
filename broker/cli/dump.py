"""`horolog dump`: prints the contents of files of a data directory, as Kafka's DumpLogSegments
does.

The rows come from `storage.dump.by_name`; here they become Kafka's lines, or one JSON object a
line."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence

import click

from broker.runtime.exit_status import CORRUPT, NOT_USABLE
from storage.dump.rows import Damage, Headers, Row, Stamp, Value

OPTIONAL = {"deleteHorizonMs", "currentTxnFirstOffset"}
"""Fields that Kafka's tool shows with their Java type."""


@click.command("dump", short_help="Print logs and indexes, as Kafka's tool does.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--deep-iteration", "deep", is_flag=True, help="Print every record of every batch.")
@click.option(
    "--print-data-log", "contents", is_flag=True, help="Print records with keys and values."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def command(files: Sequence[str], *, deep: bool, contents: bool, as_json: bool) -> int:
    """Print the contents of FILEs of a data directory: logs, indexes, snapshots.

    \b
    .log              batches; with --deep-iteration records, with
                      --print-data-log keys and values as well
    .index            offset and position of each entry
    .timeindex        timestamp (ms) and offset of each entry
    .zones            bounds of record time and of arrival, zone by zone
    .txnindex         aborted transactions
    .snapshot         what is remembered of producers
    leader-epoch-checkpoint, recovery-point-offset-checkpoint, ...

    Lines are those of Kafka's DumpLogSegments. No broker is needed, and one that is running is not
    disturbed. Where a file is damaged, standard error says where and why, and the exit status is 3
    (2 when a file cannot be read at all); what is sound is printed all the same.
    """
    from storage.dump.by_name import dump_file
    from storage.dump.log import Detail
    from storage.errors import StorageError
    from storage.posix import real_env

    fs = real_env().fs
    detail = Detail(records=deep or contents, contents=contents)
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    status = 0
    for path in files:
        out = _JsonLines(path) if as_json else _KafkaLines(path)
        try:
            for row in dump_file(fs, path, detail):
                if isinstance(row, Row):
                    out.row(row)
                else:
                    out.damage(row)
                    status = CORRUPT
        except StorageError as error:
            sys.stdout.flush()
            click.echo(f"horolog dump: {error}", err=True)
            status = status or NOT_USABLE
    return status


class _KafkaLines:
    """Lines as Kafka's tool prints them."""

    def __init__(self, path: str) -> None:
        self._path = path
        print(f"Dumping {path}")

    def row(self, row: Row) -> None:
        match row.kind:
            case "start":
                (base_offset,) = row.fields.values()
                print(f"Log starting offset: {base_offset!s}")
            case "empty":
                print(f"{self._path} is empty.")
            case "tail":
                (count,) = row.fields.values()
                name = self._path.rpartition("/")[2]
                print(f"Found {count!s} invalid bytes at the end of {name}")
            case "record":
                print(f"| {_pairs(row.fields)}")
            case _:
                print(_pairs(row.fields))

    def damage(self, damage: Damage) -> None:
        _complain(self._path, damage)


class _JsonLines:
    """One object a line, each with the file that it is from."""

    def __init__(self, path: str) -> None:
        self._path = path

    def row(self, row: Row) -> None:
        self._write(row.kind, row.fields)

    def damage(self, damage: Damage) -> None:
        self._write("damage", damage._asdict())
        _complain(self._path, damage)

    def _write(self, kind: str, fields: Mapping[str, Value]) -> None:
        content: dict[str, object] = {"file": self._path, "kind": kind}
        for name, value in fields.items():
            content.update(_members(name, value))
        print(json.dumps(content))


def _complain(path: str, damage: Damage) -> None:
    sys.stdout.flush()
    click.echo(f"horolog dump: {path}: at {damage.position}: {damage.why}", err=True)


def _pairs(fields: Mapping[str, Value]) -> str:
    return " ".join(pair for name, value in fields.items() for pair in _pair(name, value))


def _pair(name: str, value: Value) -> Iterable[str]:
    """`name: value` as Java shows it; nothing for what Kafka's tool leaves out."""
    match value:
        case bool():
            yield f"{name}: {'true' if value else 'false'}"
        case bytes():
            yield f"{name}: {value.decode('utf-8', 'replace')}"
        case list():
            yield f"{name}: [{','.join(value)}]"
        case Stamp():
            yield f"{value.type}: {value.ms}"
        case Headers():
            return
        case None:
            if name in OPTIONAL:
                yield f"{name}: OptionalLong.empty"
        case int() if name in OPTIONAL:
            yield f"{name}: OptionalLong[{value}]"
        case _:
            yield f"{name}: {value}"


def _members(name: str, value: Value) -> Mapping[str, object]:
    """The members of a JSON object; bytes that are not UTF-8 go as base64, and say so."""
    match value:
        case bytes():
            return _bytes_member(name, value)
        case Stamp():
            return {"timestampType": value.type, "timestamp": value.ms}
        case Headers():
            pairs = [{"key": key, **_members("value", each)} for key, each in value.pairs]
            return {name: pairs}
        case _:
            return {name: value}


def _bytes_member(name: str, value: bytes) -> Mapping[str, str]:
    from base64 import b64encode

    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": b64encode(value).decode()}
