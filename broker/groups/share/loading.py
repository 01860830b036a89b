"""Builds a share group from its records. Changes nothing else."""

from dataclasses import dataclass, field

from broker.groups.classic.members import Footprint
from broker.groups.records.consumer import TargetEpochValue, TargetValue
from broker.groups.records.share import (
    ShareCurrentValue,
    ShareGroupValue,
    ShareKind,
    ShareMemberValue,
    ShareRow,
    ShareStatesValue,
)
from broker.groups.remembering import group_to_change, put_part
from broker.groups.share.group import ShareGroup
from broker.groups.share.member import ShareMember, read_target, with_current, with_said
from broker.groups.share.states import remembered_states
from broker.groups.subscriptions import FIRST_EPOCH


@dataclass(slots=True)
class RememberedShares:
    """One group, by the kinds of its records."""

    group: ShareGroupValue = field(default_factory=lambda: ShareGroupValue(epoch=FIRST_EPOCH))
    target_epoch: TargetEpochValue = field(default_factory=TargetEpochValue)
    states: ShareStatesValue = field(default_factory=ShareStatesValue)
    members: dict[str, ShareMemberValue] = field(default_factory=dict)
    targets: dict[str, TargetValue] = field(default_factory=dict)
    currents: dict[str, ShareCurrentValue] = field(default_factory=dict)

    def made(self, group_id: str, footprint: Footprint) -> ShareGroup:
        """The group, without timers."""
        made = ShareGroup(group_id, footprint)
        try:
            self._fill(made)
        except Exception:
            made.end()
            raise
        return made

    def _fill(self, made: ShareGroup) -> None:
        made.epoch, made.metadata_hash = self.group.epoch, self.group.metadata_hash
        made.target_epoch, made.assigned_ms = self.target_epoch.epoch, self.target_epoch.timestamp
        made.states = remembered_states(self.states)
        for name, said in self.members.items():
            member = with_said(ShareMember(name), said)
            current = self.currents.get(name)
            made.restore(member if current is None else with_current(member, current))
        made.targets = {
            name: read_target(value.topic_partitions)
            for name, value in self.targets.items()
            if name in made.members
        }


Groups = dict[str, RememberedShares]


def apply_share(row: ShareRow, groups: Groups) -> None:
    """A record: later ones win over earlier ones, one without a value takes back."""
    group = group_to_change(
        groups,
        row.group,
        is_taken_back=row.value is None,
        is_whole=row.kind is ShareKind.GROUP,
        made=RememberedShares,
    )
    if group is None:
        return
    match row.kind:
        case ShareKind.GROUP:
            group.group = row.value
        case ShareKind.TARGET_EPOCH:
            group.target_epoch = row.value or TargetEpochValue()
        case ShareKind.STATES:
            group.states = row.value or ShareStatesValue()
        case ShareKind.MEMBER:
            put_part(group.members, row.member, row.value)
        case ShareKind.TARGET:
            put_part(group.targets, row.member, row.value)
        case ShareKind.CURRENT:
            put_part(group.currents, row.member, row.value)
