"""Pages of the tier: closed segments in an object store."""

from collections.abc import Mapping

from broker.explain.page import Page

_MEANWHILE = (
    "Nothing is lost: what is not copied stays on the local disk, whatever local.retention.* says; "
    "retention of the whole topic goes on."
)

PAGES: Mapping[str, Page] = {
    "segment_copied": Page(
        "A closed segment is in the object store: it was sent, read back and compared, and the "
        "partition's manifest names it. It may leave the local disk now."
    ),
    "local_segments_removed": Page(
        "Segments that the store has left the local disk, because local.retention.ms or "
        "local.retention.bytes says so. Their records are read from the store from now on; the "
        "log still begins where it began."
    ),
    "remote_segments_removed": Page(
        "Segments before the start of the log are no longer part of it, by retention, "
        "DeleteRecords or the end of the topic's tier. Their objects leave the store after "
        "file.delete.delay.ms."
    ),
    "cluster_pictured": Page(
        "Topics, settings, quotas, access control and producer ids are in the store as they are "
        "now, without secrets. horolog restore takes them from there."
    ),
    "tier_failed": Page(
        "A round of one partition ended in an error of the store or of the disk. As a warning, it "
        "is tried again in the next round, and the line is repeated only when the reason changes. "
        "As an error, nothing more of this partition is copied until a restart: another process "
        f"writes its manifests, or store and directory contradict each other. {_MEANWHILE}",
        "Read the reason. Watch horolog_tier_failing_partitions and horolog_tier_lag_bytes: the "
        "local disk grows meanwhile. After an error, find the other broker that writes to the same "
        "horolog.tier.url, or the old copy that was put in the place of the data directory, before "
        "you start this one again.",
    ),
    "tier_copier_ended": Page(
        "The process that carries copies to the store has ended, was silent for two minutes and "
        "was killed, or could not be begun. What it was sending counts for nothing and is sent "
        "again, and what arrived of it is an orphan. The process is begun again after "
        f"retry_seconds, each time twice as long, up to a minute. {_MEANWHILE}",
        "Where it comes again: see whether memory is short (status -9 is a kill, the kernel's "
        "too), and what standard error has from the process. It needs the broker's own "
        "environment, no port and no file.",
    ),
    "tier_unreachable": Page(
        "The store did not do what comes before the copies of a round: proving that it keeps two "
        "writers apart, or taking in topics and settings. It is asked again in each round. "
        f"{_MEANWHILE}",
        "Read the reason: look at the variables AWS_..., the bucket, its rights and the network.",
    ),
    "tier_refused": Page(
        "The tier cannot be this broker's: the store makes an object where there is one of its "
        "name (it ignores If-None-Match), so that two brokers would not notice each other, or the "
        "place belongs to another cluster, or another process writes there. Nothing is copied by "
        f"this process any longer. {_MEANWHILE}",
        "Read the reason. Use a store that honours If-None-Match, and a prefix that no other "
        "broker has; then start the broker again.",
    ),
    "tier_deletion_failed": Page(
        "Objects that nothing names any longer could not be removed from the store. They are tried "
        "again after retry_seconds, each time twice as long, up to a minute; others do not wait "
        "for them. Clients do not see them; they take up space until then.",
        "Give the broker the right to delete objects, and look at the store.",
    ),
    "tier_orphans_found": Page(
        "The store has objects below horolog.tier.url that nothing names: of a copy that was cut "
        "off, of segments that left the topic just before the broker stopped, of a topic that was "
        "deleted while the store was away. Clients do not see them. The next sweep, after "
        "horolog.tier.sweep.interval.ms, removes those that are named by nothing then either."
    ),
    "tier_orphans_removed": Page(
        "Objects that two sweeps in a row found to be named by nothing were removed from the store."
    ),
    "tier_topics_unknown": Page(
        "The store has objects of topics of which this broker knows neither that they exist nor "
        "that they were deleted. They are left alone: perhaps the data directory is an old copy, "
        "or a new one, and they are all that is left of those topics.",
        "Look at the names. Where the data directory was lost, horolog restore makes one out of "
        "the store. Where nobody misses these topics, remove their objects by the store's own "
        "tools.",
    ),
    "tier_partitions_not_swept": Page(
        "The manifests of some partitions cannot be read, or the store's newest is older than the "
        "one that is known here. Nothing of these partitions was removed. The other ones were "
        "looked at.",
        "Run horolog tier verify, and look at what happened to the store.",
    ),
    "tier_sweep_failed": Page(
        "The search for objects that nothing names did not come to its end: the store did not "
        "answer, or refused. Nothing is removed before a search has seen everything. It is done "
        "again after horolog.tier.sweep.interval.ms.",
        "Read the reason. Give the broker the right to list and delete objects.",
    ),
}
