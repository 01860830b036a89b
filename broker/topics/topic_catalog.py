"""The topics: the one writer of the metadata image, and of the files that store it.

Plain files at the top of the data directory, because a foreign directory there would keep a real
Kafka from starting: `horolog-topics.json`, `horolog-config.json`, and `horolog-producer-ids.json`
(see producer_ids.py).

Order that survives a crash: a new topic is written to the file first and its directories are made
after (the next start makes what is missing); a deleted topic leaves the file first, its id
staying behind, and its directories are renamed after (the next start finishes that). Partitions
found on disk that the file does not know, such as those of a Kafka directory, are adopted under
the topic id in their `partition.metadata`.

Rules: every change holds `changing`; the image is replaced on the loop by one assignment, made from
what it is at that moment, since partitions are put in service meanwhile; blocking calls run on a
lane.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from uuid import UUID

from broker.partitions.partition import Partition
from broker.runtime.documents import keep
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from broker.runtime.lanes import DiskLane
from broker.topics.adoption import doomed_logs, reconciled
from broker.topics.authority import DecidedTopic, DecidesHere, TopicAuthority
from broker.topics.metadata_image import MetadataImage, TopicImage, image_of
from broker.topics.names import internal_topics
from broker.topics.new_topic import NewTopic
from broker.topics.replaced_file import ReplacedFile
from broker.topics.stored_settings import FILE_NAME as CONFIG_FILE_NAME
from config.errors import ConfigError
from config.sealed_json import KEY as CHECKSUM
from config.store import ConfigStore, SettingsChange
from protocol.errors import KafkaError
from storage.directory.log_manager import LogManager
from storage.directory.topics_file import FILE_NAME, CatalogState, TopicEntry, parse, render
from storage.env import Env
from storage.errors import StorageError
from storage.files.topic_name import fault_in_name
from storage.log.log import Log


class TopicCatalog:
    """The topics of this broker. Used from the event loop only."""

    def __init__(
        self, env: Env, config: ConfigStore, log_manager: LogManager, lane: DiskLane
    ) -> None:
        """Knows nothing until `load`."""
        self._env = env
        self._config = config
        self._logs = log_manager
        self._lane = lane
        self._make_partition: Callable[[Log], Partition]
        making_room = log_manager.ballast.making_room
        self._topics_file = ReplacedFile(env.fs, self._path(FILE_NAME), making_room)
        self._settings_file = ReplacedFile(env.fs, self._path(CONFIG_FILE_NAME), making_room)
        self._keeps_deleted = config.broker_config.remote_log_storage_system_enable
        self.deleted: frozenset[UUID] = frozenset()
        """Topics whose deletion was decided, and of which something may be left: directories, or
        objects of the tier."""
        self._left_behind: frozenset[UUID] = frozenset()
        self._stored: Mapping[str, TopicEntry] = {}
        """Topics of the file, as it was written last."""
        self.image: MetadataImage = MetadataImage()
        self.internal_topics = internal_topics(config.broker_config)
        """Clients may read them, and neither write nor make, change or delete them."""
        self.changing = asyncio.Lock()
        self.authority: TopicAuthority = DecidesHere()

    def restore_settings(self) -> None:
        """Before any log is opened: the settings that clients changed while it ran last. Raises
        ConfigError.
        """
        if self._settings_file.read() is not None:
            try:
                self._config.restore(self._env.fs.read_text(self._settings_file.path))
            except ConfigError as error:
                advice = ": horolog config unset, with that key, takes back what is stored"
                text = error.message + advice * (error.key != CHECKSUM)
                raise ConfigError(error.key, text, where=self._settings_file.path) from error
            self._config.check_stored_topics()

    def load(self, make_partition: Callable[[Log], Partition]) -> None:
        """Joins the stored topics with the logs on the disk, after these are open. Blocks.

        `make_partition` puts a log in service, now and for every topic made later.
        """
        self._make_partition = make_partition
        stored = self._read_state()
        for log in doomed_logs(stored, self._logs_by_topic()):
            self._logs.delete_log(log.topic, log.partition)
        found = self._logs_by_topic()
        state = reconciled(stored, found, self._env.rng.uuid)
        if stored is not None and self._keeps_deleted:
            state = CatalogState(state.topics, stored.deleted)
        topics = []
        for name, entry in state.topics.items():
            logs = [
                found.get(name, {}).get(index) or self._make_log(name, index, entry.topic_id)
                for index in range(entry.partition_count)
            ]
            topics.append(self._image_of(name, entry.topic_id, logs))
        self.image, self.deleted = image_of(topics), state.deleted
        if state != stored:
            self._write_state(state)
        self._drop_orphaned_settings()
        self._config.subscribe(self._settings_changed)

    async def create(self, new: Sequence[NewTopic]) -> None:
        """Makes topics that were judged possible; durable when this returns. Hold `changing`.

        Raises StorageError when the disk refuses; then none of them exists. One that the next start
        may find all the same keeps its settings.
        """
        if not new:
            return
        settings = self._config.serialise()
        overrides = {each.name: each.overrides for each in new}
        changed_settings = self._config.text_with(overrides)
        await self.authority.create(new, changed_settings)
        self._config.use_topics(overrides)
        try:
            if not self._settings_file.holds(changed_settings.encode()):
                await self._keep_settings(changed_settings, _nothing)
            await self._bring_in(new)
        except StorageError:
            if not (self.authority.is_shared or self._may_be_stored(new)):
                self._config.restore(settings)
            raise

    async def _bring_in(self, new: Sequence[NewTopic]) -> None:
        images = await self._lane.run(self._make_topics, new)
        self.image = self.image.with_topics(images)

    async def add_partitions(self, counts: Mapping[str, int]) -> None:
        """Extends topics to so many partitions; durable when this returns. Hold `changing`."""
        ids = {self.image.topics[name].topic_id: count for name, count in counts.items()}
        await self.authority.grow(ids)
        await self._grow(counts)

    async def _grow(self, counts: Mapping[str, int]) -> None:
        more = await self._lane.run(self._make_partitions, counts)
        topics = [self.image.topics[name] for name in more]
        self.image = self.image.with_topics(
            TopicImage(each.name, each.topic_id, (*each.partitions, *more[each.name]))
            for each in topics
        )

    async def delete(self, names: Sequence[str]) -> None:
        """Deletes topics and their settings; durable when this returns. Hold `changing`.

        Raises StorageError when the decision cannot be stored; then they stay, and where the next
        start may find it stored all the same, they take no more records. What fails after that is
        finished by the next start.
        """
        if not names:
            return
        await self.authority.delete([self.image.topics[name].topic_id for name in names])
        await self._take_out(names)
        try:
            await self._drop_settings(names)
        except StorageError as error:
            event("settings_left_behind", "warning", topics=list(names), error=error)

    async def _drop_settings(self, names: Sequence[str]) -> None:
        """Takes out those of topics that were deleted. In a fleet its document goes first, and the
        nodes that follow the deletion change nothing: to each what it has followed is all there is.
        """
        if not self._config.topics_with_overrides().isdisjoint(names):
            text = self._config.text_with({each: {} for each in names})
            await self.authority.settings(text)
            self.forget_settings(names)
            await self._lane.run(self._write_settings, text)

    def forget_settings(self, names: Iterable[str]) -> None:
        """Topics have none of their own."""
        for name in names:
            self._config.remove_topic(name)

    async def _take_out(self, names: Sequence[str]) -> None:
        image = self.image
        deleted = self.deleted | {image.topics[name].topic_id for name in names}
        try:
            await self._lane.run(self._write_state, _state_of(image.without(names), deleted))
        except StorageError as error:
            if self._topics_file.is_unknown:
                _take_offline((self.image.topics[name] for name in names), error)
            raise
        topics = [self.image.topics[name] for name in names]
        self.image = self.image.without(names)
        for each in chain.from_iterable(topic.partitions for topic in topics):
            each.writer.went_away()  # a write to one may wait for another
        for topic in topics:
            await self._remove_logs(topic)

    async def _remove_logs(self, topic: TopicImage) -> None:
        """Each log when its last writer is done; then the file may forget the topic's id, unless
        the tier has to be cleared of it.

        One that stays behind goes with the next topic of that name, or with the next start.
        """
        left: list[KafkaError] = []
        for each in topic.partitions:
            try:
                await wait_for(
                    each.writer.in_turn(partial(self._logs.delete_log, topic.name, each.index))
                )
            except KafkaError as error:
                left.append(error)
        if left:
            self._left_behind |= {topic.topic_id}
            event("directories_left_behind", "warning", topic=topic.name, error=left[0])
        elif not self._keeps_deleted:
            self.deleted -= {topic.topic_id}

    async def forget_deleted(self, topic_ids: frozenset[UUID]) -> None:
        """Nothing of these topics is left in the tier; the next change of the file leaves them out,
        but for those whose directories stayed behind.
        """
        async with self.changing:
            self.deleted -= topic_ids - self._left_behind

    async def alter_settings(self, change: SettingsChange) -> None:
        """Makes a checked change of settings durable, then lets it count. Hold `changing`."""
        text = change.serialise()
        await self.authority.settings(text)
        await self._keep_settings(text, partial(self._config.commit, change))

    async def _keep_settings(self, text: str, count: Callable[[], None]) -> None:
        write = partial(self._lane.run, self._write_settings, text)
        await keep(self.authority, "settings", count, write)

    async def follow(self, decided: Iterable[DecidedTopic]) -> None:
        """Has the topics that an authority has decided, and no others.

        Hold `changing`. StorageError: the rest comes when it is asked again.
        """
        wanted = {each.topic_id: each for each in decided}
        self.deleted -= wanted.keys()
        gone = [name for name, each in self.image.topics.items() if each.topic_id not in wanted]
        if gone:
            await self._take_out(gone)
        new = [
            NewTopic(each.name, each.topic_id, each.partition_count, {})
            for each in wanted.values()
            if each.topic_id not in self.image.by_id
        ]
        if new:
            await self._bring_in(new)
        grown = {
            each.name: each.partition_count
            for each in wanted.values()
            if each.partition_count > len(self.image.by_id[each.topic_id].partitions)
        }
        if grown:
            await self._grow(grown)

    async def follow_settings(self, text: str) -> None:
        """Has the settings that an authority has decided. Hold `changing`.

        ConfigError when this node cannot have them; then it keeps those it has.
        """
        if text != self._config.serialise():
            await self._keep_settings(text, partial(self._config.follow, text))

    def put_in_service(self, log: Log) -> Partition:
        """The partition of a log, which takes the place of one with a log from before."""
        topic = self.image.topics[log.topic]
        partition = topic.partitions[log.partition]
        if partition.log is not log:
            partition = self._make_partition(log)
            others = list(topic.partitions)
            others[log.partition] = partition
            changed = TopicImage(topic.name, topic.topic_id, tuple(others))
            self.image = self.image.with_topics([changed])
        return partition

    def _make_topics(self, new: Sequence[NewTopic]) -> list[TopicImage]:
        """On a lane: the file first, then the directories; undone as a whole when one fails.

        In a fleet others have these topics whatever becomes of them here, so none was deleted.
        """
        entries = {each.name: TopicEntry(each.topic_id, each.partition_count) for each in new}
        ids = frozenset(entry.topic_id for entry in entries.values())
        before = _state_of(self.image, self.deleted - ids)
        self._write_state(CatalogState({**before.topics, **entries}, before.deleted))
        made: list[Log] = []
        try:
            images = []
            for topic in new:
                logs = []
                for index in range(topic.partition_count):
                    logs.append(self._make_log(topic.name, index, topic.topic_id))
                    made.append(logs[-1])
                images.append(self._image_of(topic.name, topic.topic_id, logs))
        except StorageError:
            deleted = before.deleted if self.authority.is_shared else before.deleted | ids
            self._write_state(CatalogState(before.topics, deleted))
            for log in made:
                self._undo(log)
            raise
        return images

    def _undo(self, log: Log) -> None:
        """A log of a topic that could not be made whole goes, if need be with the next one."""
        try:
            self._logs.delete_log(log.topic, log.partition)
        except StorageError as error:
            event("directories_left_behind", "warning", topic=log.topic, error=error)

    def _make_partitions(self, counts: Mapping[str, int]) -> Mapping[str, Sequence[Partition]]:
        """On a lane: those that topics lack, by topic; the file first, then the directories."""
        state = _state_of(self.image, self.deleted)
        entries = {
            name: TopicEntry(self.image.topics[name].topic_id, count)
            for name, count in counts.items()
        }
        self._write_state(CatalogState({**state.topics, **entries}, state.deleted))
        made = {}
        for name, entry in entries.items():
            there = state.topics[name].partition_count
            logs = (self._make_log(name, at, entry.topic_id) for at in range(there, counts[name]))
            made[name] = [self._make_partition(each) for each in logs]
        return made

    def _make_log(self, topic: str, index: int, topic_id: UUID) -> Log:
        return self._logs.create_log(topic, index, topic_id, self._config.topic_config(topic))

    def _image_of(self, name: str, topic_id: UUID, logs: Iterable[Log]) -> TopicImage:
        return TopicImage(name, topic_id, tuple(map(self._make_partition, logs)))

    def _logs_by_topic(self) -> dict[str, dict[int, Log]]:
        found: dict[str, dict[int, Log]] = defaultdict(dict)
        for (topic, index), log in self._logs.logs.items():
            if fault_in_name(topic) is None:
                found[topic][index] = log
        return found

    def _settings_changed(self, topic: str | None) -> None:
        topics = self.image.topics
        for name in topics if topic is None else [topic]:
            if name in topics:
                config = self._config.topic_config(name)
                for each in topics[name].partitions:
                    each.log.reconfigure(config)

    def _drop_orphaned_settings(self) -> None:
        """Settings of topics that a crash kept from being made, or that were deleted."""
        orphans = [n for n in self._config.topics_with_overrides() if n not in self.image.topics]
        for name in orphans:
            self._config.remove_topic(name)
        if orphans:
            self._write_settings(self._config.serialise())

    def _may_be_stored(self, new: Sequence[NewTopic]) -> bool:
        """True when the next start may find topics that could not be made."""
        return self._topics_file.is_unknown or any(each.name in self._stored for each in new)

    def _read_state(self) -> CatalogState | None:
        content = self._topics_file.read()
        if content is None:
            return None
        state = parse(content)
        self._stored = state.topics
        live = {entry.topic_id for entry in state.topics.values()}
        return CatalogState(state.topics, state.deleted - live)

    def _write_state(self, state: CatalogState) -> None:
        self._topics_file.write(render(state))
        self.deleted, self._stored = state.deleted, state.topics

    def _write_settings(self, text: str) -> None:
        self._settings_file.write(text.encode())

    def _path(self, name: str) -> str:
        return f"{self._lane.log_dir}/{name}"


def _nothing() -> None:
    """Leaves settings as they are, which count already."""


def _take_offline(topics: Iterable[TopicImage], error: StorageError) -> None:
    """Records that were acknowledged now might be gone with the topic at the next start."""
    for topic in topics:
        for each in topic.partitions:
            each.log.fail(error)
            each.writer.went_offline()


def _state_of(image: MetadataImage, deleted: frozenset[UUID]) -> CatalogState:
    return CatalogState(
        {
            name: TopicEntry(topic.topic_id, len(topic.partitions))
            for name, topic in image.topics.items()
        },
        deleted,
    )
