"""Builds a streams group from its records. Changes nothing else."""

from dataclasses import dataclass, field

from broker.groups.classic.members import Footprint
from broker.groups.records.consumer import TargetEpochValue
from broker.groups.records.streams import (
    StreamsCurrentValue,
    StreamsGroupValue,
    StreamsKind,
    StreamsMemberValue,
    StreamsRow,
    StreamsTargetValue,
    TopologyValue,
)
from broker.groups.remembering import group_to_change, put_part
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember, with_current, with_said
from broker.groups.streams.tasks import read_target
from broker.groups.streams.topology import Topology
from broker.groups.subscriptions import FIRST_EPOCH


def _first_target() -> TargetEpochValue:
    return TargetEpochValue(epoch=FIRST_EPOCH)


@dataclass(slots=True)
class RememberedStreams:
    """One group, by the kinds of its records."""

    group: StreamsGroupValue = field(
        default_factory=lambda: StreamsGroupValue(epoch=FIRST_EPOCH, validated_topology_epoch=0)
    )
    target_epoch: TargetEpochValue = field(default_factory=_first_target)
    topology: TopologyValue | None = None
    members: dict[str, StreamsMemberValue] = field(default_factory=dict)
    targets: dict[str, StreamsTargetValue] = field(default_factory=dict)
    currents: dict[str, StreamsCurrentValue] = field(default_factory=dict)

    def made(self, group_id: str, footprint: Footprint) -> StreamsGroup:
        """The group, without timers."""
        made = StreamsGroup(group_id, footprint)
        try:
            self._fill(made)
        except Exception:
            made.end()
            raise
        return made

    def _fill(self, made: StreamsGroup) -> None:
        made.epoch, made.metadata_hash = self.group.epoch, self.group.metadata_hash
        made.validated_epoch = self.group.validated_topology_epoch
        settings = self.group.last_assignment_configs or []
        made.assignor_settings = {each.key: each.value for each in settings}
        made.target_epoch, made.assigned_ms = self.target_epoch.epoch, self.target_epoch.timestamp
        if self.topology is not None:
            made.restore_topology(Topology(self.topology))
        for name, said in self.members.items():
            member = with_said(StreamsMember(name), said)
            current = self.currents.get(name)
            made.restore(member if current is None else with_current(member, current))
        made.targets = {
            name: read_target(value) for name, value in self.targets.items() if name in made.members
        }


Groups = dict[str, RememberedStreams]


def apply_streams(row: StreamsRow, groups: Groups) -> None:
    """A record: later ones win over earlier ones, one without a value takes back."""
    group = group_to_change(
        groups,
        row.group,
        is_taken_back=row.value is None,
        is_whole=row.kind is StreamsKind.GROUP,
        made=RememberedStreams,
    )
    if group is None:
        return
    match row.kind:
        case StreamsKind.GROUP:
            group.group = row.value
        case StreamsKind.TARGET_EPOCH:
            group.target_epoch = row.value or _first_target()
        case StreamsKind.TOPOLOGY:
            group.topology = row.value
        case StreamsKind.MEMBER:
            put_part(group.members, row.member, row.value)
        case StreamsKind.TARGET:
            put_part(group.targets, row.member, row.value)
        case StreamsKind.CURRENT:
            put_part(group.currents, row.member, row.value)
