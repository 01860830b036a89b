"""Partitions as a tier's store alone has them: no broker and no directory is asked.

Which topics there are, the newest picture of the cluster says; how far a partition is copied, its
manifest. What the broker has not copied yet is not part of it.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from pipeline.directories.tier_manifests import newest_manifest
from pipeline.directories.tier_store import StorePlace, patiently, store_at
from pipeline.errors import DamagedLog, NothingThere
from pipeline.sources.log_ends import last_stable_offset
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.tier_parts import files_of, path_of
from storage.directory.topics_file import TopicEntry, parse
from storage.errors import CorruptCheckpoint
from storage.tier.card import NoTier, cluster_of
from storage.tier.cluster_picture import TOPICS_FILE, newest
from storage.tier.manifests.manifest import Manifest
from storage.tier.names import PartitionKeys


def tier_views(options: ReadOptions) -> list[PartitionView]:
    """The partitions that are asked for. NothingThere, DamagedLog, StoreError.

    A topic of which nothing was ever copied is not there; a partition of which nothing was copied,
    while others of its topic were, begins and ends at 0.
    """
    place = options.tier
    assert place is not None
    topics = _topics(place)
    wanted = options.assigned or options.topics
    for name in wanted:
        if name not in topics:
            raise NothingThere(f"the topic {name!r} is not in {place}")
    views: list[PartitionView] = []
    for name, entry in topics.items():
        if options.takes(name):
            found = list(_views(options, place, name, entry))
            if not found and name in wanted:
                raise NothingThere(
                    f"nothing of the topic {name!r} is in {place}: it has no remote.storage.enable,"
                    " or no segment of it was closed and copied yet"
                )
            views += found
    return views


def _topics(place: StorePlace) -> Mapping[str, TopicEntry]:
    store = store_at(place)
    try:
        patiently(partial(cluster_of, store))
        picture = patiently(partial(newest, store))
        if picture is None:
            raise NothingThere(f"{place} has no list of topics yet: no broker has copied there")
        text = picture.content.files.get(TOPICS_FILE)
        return {} if text is None else parse(text.encode()).topics
    except NoTier as error:
        raise NothingThere(f"{place}: {error}") from None
    except CorruptCheckpoint as error:
        raise DamagedLog(f"{place}: {error}; horolog tier verify tells more") from error


def _views(
    options: ReadOptions, place: StorePlace, topic: str, entry: TopicEntry
) -> Iterator[PartitionView]:
    """The topic's partitions; none when none of them was copied."""
    wanted = [each for each in range(entry.partition_count) if options.takes(topic, each)]
    manifests = [
        newest_manifest(place, PartitionKeys(topic, entry.topic_id, each)) for each in wanted
    ]
    if not any(manifests):
        return
    for partition, manifest in zip(wanted, manifests, strict=True):
        view = PartitionView(topic, partition, entry.topic_id.hex, 0, 0, tier=place)
        yield view if manifest is None else _with_bounds(view, manifest, options)


def _with_bounds(view: PartitionView, manifest: Manifest, options: ReadOptions) -> PartitionView:
    start, end = manifest.log_start_offset, manifest.end_offset
    view = view._replace(
        start_offset=start,
        end_offset=max(start, end),
        size_bytes=sum(each.size_bytes for each in manifest.segments),
    )
    if not options.is_committed:
        return view
    stable = last_stable_offset(path_of(view), view.end_offset, files_of(view))
    return view._replace(end_offset=max(start, stable))
