"""One log and its part in the store: what is copied, what leaves the directory, what is gone.

Calls that ask the store block for as long as it does: on lanes of the tier, without the
partition's writer gate. Copying is one thread's at a time; `replace`, for compaction, may be
another's. What they bring about in the log itself (`show`, `leave`) takes the gate, and no store.
The order makes every crash harmless: objects, then the manifest, then `horolog-remote`, then the
log; names leave the manifest before objects leave the store.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from storage.env import Env
from storage.errors import StorageError
from storage.locks import Lock
from storage.log.compaction_state import CleanPart
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.tier.carrying import Pace
from storage.tier.copying import Destination, copy_segment
from storage.tier.eligible import next_to_copy
from storage.tier.known_state import KnownState
from storage.tier.leaving import LeavingSegments
from storage.tier.manifests.chain import ManifestChain
from storage.tier.manifests.local_state import LocalState
from storage.tier.manifests.manifest import Change, Manifest, RemoteSegment
from storage.tier.mirror import Mirror, taken_by
from storage.tier.names import RECORDS, SIDE, EpochKeys, PartitionKeys, unique_text
from storage.tier.remote_object import Reach
from storage.tier.remote_segments import RemoteSegments, unique_of
from storage.tier.single_writer import LatePut
from storage.tier.unnamed import Unnamed


class TierMismatch(StorageError):  # noqa: N818 - what was found
    """Store and directory contradict each other: nothing is copied until a person has looked."""


class SegmentsChanged(StorageError):  # noqa: N818 - what happened
    """Segments left the store while compaction wrote what was to replace them: it begins again."""


class TieredLog:
    """A log that goes on in the store."""

    def __init__(
        self, log: Log, keys: PartitionKeys, reach: Reach, env: Env, known: LocalState | None
    ) -> None:
        """`known`: what the directory knows of the store. Nothing is asked."""
        self.log = log
        self.keys = keys
        self._reach = reach
        self._env = env
        newest = None if known is None else known.manifest
        self._chain = ManifestChain(reach.store, keys, env.clock, env.rng, newest)
        self._segments = RemoteSegments(reach, keys)
        self._known = KnownState(log, env.fs, known or LocalState(Manifest(0, *keys)))
        self._unnamed = Unnamed()
        self._is_settled = False
        self._named = self.manifest if isinstance(keys, EpochKeys) else None
        """In a fleet the state that the rows name. Whatever this node has put since, a next leader
        begins with it.
        """
        self.is_served = False
        """True in a fleet once the log is served as its leader's: one that is being loaded may be
        another's before that is done.
        """
        self._mirror = Mirror(log)
        self.leaving = LeavingSegments(log, self._known, self._mirror.same)
        self._changing = Lock()

    @property
    def manifest(self) -> Manifest:
        """State of the store, as far as the directory knows durably."""
        return self._known.now.manifest

    @property
    def is_retired(self) -> bool:
        """True once nothing is written into its directory, and shown to the log, any longer."""
        return self._known.is_retired

    @property
    def is_led(self) -> bool:
        """True in a fleet while this node leads it: nobody else's segments count."""
        return self.is_served and not self.is_retired

    @property
    def is_named(self) -> bool:
        """True in a fleet once the rows name a manifest of this epoch: those of before are over."""
        return self.named_number > 0

    @property
    def named_number(self) -> int:
        """Number of the manifest that the rows of a fleet name; 0: none of this epoch."""
        return 0 if self._named is None else self._named.number

    def named(self, manifest: Manifest) -> None:
        """The rows of a fleet name this one."""
        self._named = manifest

    @property
    def _is_begun(self) -> bool:
        """True when the store has a manifest, this leader's or one before it."""
        return bool(self.manifest.number or self.manifest.segments)

    @property
    def uploaded_end(self) -> int:
        """The offset up to which the store has the log."""
        return self.manifest.end_offset

    def spoken_for(self) -> frozenset[str]:
        """`unique` of all segments that count in the store, or are about to. From any thread.

        Looked at in the order in which a copy becomes part of the state, so that none is missed.
        """
        copies, named, pending = self._unnamed.copies, self._named, self._chain.pending
        states = (named, pending, self._chain.newest, self.manifest)
        rows = (row for each in states if each is not None for row in each.segments)
        return frozenset(row.unique for row in rows) | copies

    # --- with the store ---

    def settle(self) -> None:
        """Finds out what became of the last change, and once in a process what the store has.

        TierMismatch, WriterReplaced, StorageError.
        """
        with self._changing:
            self._settle()

    def _settle(self) -> None:
        with self._unless_late():
            self._chain.settle()
        found = self._chain.load()
        if not self._is_settled:
            try:
                self._compare(found)
            except TierMismatch:
                self._chain.newest = None  # looked at again the next time
                raise
        self._keep(found)
        self._is_settled = True

    def _compare(self, found: Manifest) -> None:
        known, end_offset = self.manifest, self.log.snapshot.log_end_offset
        if found.number < known.number:
            raise TierMismatch(
                self.keys.manifests,
                f"manifest {known.number} is known here, the store's newest is {found.number}",
            )
        if found.end_offset > end_offset:
            raise TierMismatch(
                self.keys.manifests,
                f"the store has offsets below {found.end_offset}, the log ends at {end_offset}: "
                "is the directory an old copy?",
            )

    def fence(self) -> None:
        """Has the store a manifest of this process: none of an earlier one can come any longer.

        Before segments leave the directory: one that came then might no longer name them.
        TierMismatch, WriterReplaced, StorageError.
        """
        with self._changing:
            self._settle()
            if not self._chain.has_put:
                self._restate(self.log.snapshot.log_start_offset)

    def copy_next(self, pace: Pace) -> RemoteSegment | None:
        """Copies the oldest segment that is due; None when none is. `show` makes it count.

        StorageError: nothing counts, and a later call begins again.
        """
        self.settle()
        found = next_to_copy(self.log.snapshot, self.uploaded_end)
        if found is None:
            return None
        row = self._upload(*found, pace)
        if row is not None:
            try:
                self._name((row,), CleanPart())
            finally:
                self._unnamed.end({row.unique})  # named, about to be named, or an orphan
        return row

    def copy_again(self, segment: Segment, end_offset: int, pace: Pace) -> RemoteSegment | None:
        """Copies a segment whose records the store has: its side files say more now.

        None when retention or compaction was faster. StorageError: as `copy_next`.
        """
        row = self._upload(segment, end_offset, pace)
        if row is not None:
            try:
                self._name((row,), None)
            finally:
                self._unnamed.end({row.unique})
        return row

    def mirror_next(self, pace: Pace, cleaned: CleanPart) -> RemoteSegment | None:
        """As `copy_next`, for a log that compaction rewrites: see `storage.tier.mirror`.

        What was copied counts once this gives None. Segments that have taken the place of others
        take theirs in the manifest as well. `cleaned`: how far compaction had been before the call.
        """
        self.settle()
        mirror = self._mirror
        while (found := mirror.next(self.manifest, cleaned)) is not None:
            row = self._upload(*found, pace)
            if row is not None:
                mirror.copied(found, row)
                return row
            self._unnamed.left(mirror.begin_again(self.manifest))
        rows, clean_part = mirror.rows(self.manifest), mirror.cleaned(self.manifest)
        if rows or (self.manifest.segments and clean_part != self.manifest.cleaned):
            self._name(rows, clean_part)
        self._unnamed.left(mirror.named(self.manifest))
        return None

    def _upload(self, segment: Segment, end_offset: int, pace: Pace) -> RemoteSegment | None:
        """Its objects; None when retention or compaction was faster."""
        unique = unique_text(self._env.rng.uint64())
        reach = self._reach
        to = Destination(reach.carrier, self.keys, unique, pace)
        if segment not in self.log.snapshot.local_segments:
            return None
        row = None
        self._unnamed.begin(unique)
        try:
            row = copy_segment(self.log, segment, end_offset, to)
            if segment.is_removed or segment not in self.log.snapshot.local_segments:
                reach.sender.delete(self.objects_of(row))
                row = None
        finally:
            if row is None:
                self._unnamed.end({unique})
        return row

    def _name(self, rows: tuple[RemoteSegment, ...], cleaned: CleanPart | None) -> None:
        """Has the manifest name these, and no others of their offsets."""
        with self._changing:
            self._settle()
            self._put(rows, taken_by(rows, self.manifest), cleaned)

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Puts a segment that compaction made of some in the store in their place there.

        `show` makes it count. StorageError: it is not in the manifest, unless an answer was lost.
        """
        unique = frozenset(map(unique_of, old))
        rows = tuple(each for each in self.manifest.segments if each.unique in unique)
        self._check_all(rows, old)
        reach, name = self._reach, unique_text(self._env.rng.uint64())
        to = Destination(reach.carrier, self.keys, name, reach.copy_pace)
        producers = self._segments.producers_at_end(rows[-1])
        self._unnamed.begin(to.unique)
        try:
            row = copy_segment(self.log, new, rows[-1].end_offset, to, producers)
            with self._changing:
                self._settle()
                found = tuple(each for each in self.manifest.segments if each.unique in unique)
                if found != rows:
                    reach.sender.delete(self.objects_of(row))
                self._check_all(found, old)
                self._put((row,), rows)
        finally:
            self._unnamed.end({to.unique})  # named, about to be named, or an orphan

    def _check_all(self, rows: tuple[RemoteSegment, ...], old: Sequence[Segment]) -> None:
        if len(rows) != len(old):
            raise SegmentsChanged(self.keys.prefix, "segments left the store meanwhile")

    def _put(
        self,
        rows: tuple[RemoteSegment, ...],
        before: tuple[RemoteSegment, ...],
        cleaned: CleanPart | None = None,
    ) -> None:
        gone = frozenset(each.unique for each in before)
        start = self.log.snapshot.log_start_offset  # else a start takes it from what it finds here
        self._change(Change(rows, gone, start, self.log.epochs.entries, cleaned))
        self._unnamed.left(before)

    @property
    def replaced(self) -> tuple[RemoteSegment, ...]:
        """Segments that `take_replaced` would give."""
        return self._unnamed.replaced

    def take_replaced(self) -> tuple[RemoteSegment, ...]:
        """Segments that no manifest names any longer; their objects may go."""
        return self._unnamed.take()

    def expire(self) -> tuple[RemoteSegment, ...]:
        """Takes segments before the log's start out of the manifest; their objects may go later.

        StorageError: they are still in it.
        """
        start = self.log.snapshot.log_start_offset
        if not self._is_begun or not (start > self.manifest.log_start_offset or self._gone(start)):
            return ()
        with self._changing:
            self._settle()
            gone = self._gone(start)
            self._restate(start, gone)
        return gone

    def note_start(self) -> None:
        """Has the store know where a log begins that has nothing there.

        StorageError: it may know.
        """
        start = self.log.snapshot.log_start_offset
        if self._is_begun or not start:
            return
        with self._changing:
            self._settle()
            self._restate(start)

    def withdraw(self) -> tuple[RemoteSegment, ...]:
        """Takes all segments out of the manifest, once each of them is in the directory too.

        For a topic whose tier has ended. `show` makes it count; their objects may go then.
        StorageError: they are still in it.
        """
        if self.log.snapshot.first_local or not self._is_begun:
            return ()
        with self._changing:
            self._settle()
            gone = self.manifest.segments
            if gone:
                self._restate(self.log.snapshot.log_start_offset, gone)
        return gone

    def _restate(self, start_offset: int, gone: Sequence[RemoteSegment] = ()) -> None:
        """Puts a manifest with this start, the epochs of now, and without these segments."""
        removed = frozenset(each.unique for each in gone)
        self._change(Change((), removed, start_offset, self.log.epochs.entries))

    def _gone(self, start_offset: int) -> tuple[RemoteSegment, ...]:
        return tuple(each for each in self.manifest.segments if each.end_offset <= start_offset)

    def objects_of(self, row: RemoteSegment) -> tuple[str, ...]:
        """Names of a segment's objects."""
        return tuple(
            self.keys.segment(row.base_offset, row.unique, suffix) for suffix in (RECORDS, SIDE)
        )

    def segment_names(self) -> list[str]:
        """Names of the objects of all its segments."""
        return [key for row in self.manifest.segments for key in self.objects_of(row)]

    def manifest_names(self) -> list[str]:
        """Names of its manifests, the newest last: without it the others tell nothing."""
        return [self.keys.manifest(number + 1) for number in range(self.manifest.number)]

    def forget(self, rows: Sequence[RemoteSegment]) -> None:
        """Their objects are about to go."""
        for row in rows:
            self._segments.forget(row)

    def _change(self, change: Change) -> None:
        self._known.check_open()
        with self._unless_late():
            after = self._chain.append(change)
        self._keep(after)

    @contextmanager
    def _unless_late(self) -> Iterator[None]:
        """Have the next call compare with the directory what came instead of this process's put."""
        try:
            yield
        except LatePut:
            self._is_settled = False
            raise

    def _keep(self, manifest: Manifest) -> None:
        if manifest.number != self.manifest.number:
            self._known.save(lambda state: state._replace(manifest=manifest))
            self._unnamed.end(row.unique for row in manifest.segments)

    def resign(self) -> None:
        """Another node leads it: what is under way comes to nothing. Does not wait for it."""
        self._known.is_retired = True

    def retire(self) -> None:
        """The log was closed, or its part in the store is another's by now: nothing is written into
        its directory after this call.
        """
        self._known.retire()

    # --- in the log ---

    def show(self) -> None:
        """Has the log read from the store what is there, unless this is over: the log may be shown
        by another by now. Holds the writer gate.
        """
        if self.is_retired:
            return
        manifest = self.manifest
        end_offset = manifest.end_offset if manifest.segments else 0
        self.log.show_uploaded(self._segments.of(manifest.segments), end_offset)

    def leave(self, below: int) -> tuple[Segment, ...]:
        """Takes some local segments before `below` out of the directory, of those that
        `leaving.droppable` has found: compaction may have replaced some since.

        That they go is durable before they do. Holds the writer gate, and blocks. DiskError: what
        was done stays done.
        """
        if self.log.compaction.is_running:
            return ()
        left = self.finish_leaving()
        if left:
            return left
        self.leaving.vouch(below)
        return self.finish_leaving()

    def finish_leaving(self) -> tuple[Segment, ...]:
        """Takes some segments out of the directory of which it is durable that they go.

        A start would do it, in whatever state they are then: so before compaction makes others of
        them this gives none. Holds the writer gate, and blocks. DiskError: as `leave`. LogOffline:
        another may have shown the log what has a copy.
        """
        self._known.check_open()
        self.show()  # a copy that failed late may have brought more than the log was shown
        return self.leaving.drop()
