"""Builds a consumer group from its records. Changes nothing else."""

from dataclasses import dataclass, field
from typing import Any

from broker.groups.classic.members import Footprint
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember, with_current, with_said
from broker.groups.records.consumer import (
    ConsumerRow,
    CurrentValue,
    GroupValue,
    RecordKind,
    RegexValue,
    Said,
    TargetEpochValue,
    TargetValue,
)
from broker.groups.subscriptions import FIRST_EPOCH


@dataclass(slots=True)
class RememberedConsumers:
    """One group, by the kinds of its records."""

    group: GroupValue = field(default_factory=lambda: GroupValue(epoch=FIRST_EPOCH))
    target_epoch: TargetEpochValue = field(default_factory=TargetEpochValue)
    members: dict[str, Said] = field(default_factory=dict)
    targets: dict[str, TargetValue] = field(default_factory=dict)
    currents: dict[str, CurrentValue] = field(default_factory=dict)
    expressions: dict[str, RegexValue] = field(default_factory=dict)

    def made(self, group_id: str, footprint: Footprint) -> ConsumerGroup:
        """The group, without timers."""
        made = ConsumerGroup(group_id, footprint)
        try:
            self._fill(made)
        except Exception:
            made.end()
            raise
        return made

    def _fill(self, made: ConsumerGroup) -> None:
        made.epoch, made.metadata_hash = self.group.epoch, self.group.metadata_hash
        made.target_epoch = self.target_epoch.epoch
        made.expressions = dict(self.expressions)
        for name, said in self.members.items():
            member = with_said(ConsumerMember(name), said)
            current = self.currents.get(name)
            made.restore(member if current is None else with_current(member, current))
        made.targets = {
            name: {each.topic_id: frozenset(each.partitions) for each in value.topic_partitions}
            for name, value in self.targets.items()
            if name in made.members
        }


Groups = dict[str, RememberedConsumers]


def apply(row: ConsumerRow, groups: Groups) -> None:
    """A record: later ones win over earlier ones, one without a value takes back."""
    if row.kind is RecordKind.GROUP and row.value is None:
        groups.pop(row.group, None)
        return
    if row.value is None and row.group not in groups:
        return
    group = groups.setdefault(row.group, RememberedConsumers())
    match row.kind:
        case RecordKind.GROUP:
            group.group = row.value
        case RecordKind.TARGET_EPOCH:
            group.target_epoch = row.value or TargetEpochValue()
        case RecordKind.MEMBER:
            _put(group.members, row)
        case RecordKind.TARGET:
            _put(group.targets, row)
        case RecordKind.CURRENT:
            _put(group.currents, row)
        case RecordKind.REGEX:
            _put(group.expressions, row)


def _put(values: dict[str, Any], row: ConsumerRow) -> None:
    if row.value is None:
        values.pop(row.part, None)
    else:
        values[row.part] = row.value
