"""Builds a consumer group from its records. Changes nothing else."""

from dataclasses import dataclass, field

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
from broker.groups.remembering import group_to_change, put_part
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
    group = group_to_change(
        groups,
        row.group,
        is_taken_back=row.value is None,
        is_whole=row.kind is RecordKind.GROUP,
        made=RememberedConsumers,
    )
    if group is None:
        return
    match row.kind:
        case RecordKind.GROUP:
            group.group = row.value
        case RecordKind.TARGET_EPOCH:
            group.target_epoch = row.value or TargetEpochValue()
        case RecordKind.MEMBER:
            put_part(group.members, row.part, row.value)
        case RecordKind.TARGET:
            put_part(group.targets, row.part, row.value)
        case RecordKind.CURRENT:
            put_part(group.currents, row.part, row.value)
        case RecordKind.REGEX:
            put_part(group.expressions, row.part, row.value)
