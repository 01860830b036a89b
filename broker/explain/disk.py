"""Pages of the disk: space, faults, damage."""

from collections.abc import Mapping

from broker.explain.page import Page

_RESTORE = (
    "Consumers stop at the damage and do not lose their place. Copy the partition's directory "
    "away, run horolog verify on it, and restore the segment from a backup or another copy; "
    "or let retention or DeleteRecords take the range away."
)

PAGES: Mapping[str, Page] = {
    "disk_low": Page(
        "Less space is free than horolog.disk.reserve.bytes. Producers receive an error that "
        "they retry (KAFKA_STORAGE_ERROR) and buffer records; topics cannot be created. Reading, "
        "commits of offsets, deletion, retention and compaction go on, deleted files go at once, "
        "and writing resumes by itself.",
        "Make room: delete topics, shorten retention (horolog retention preview shows what would "
        "go), grow the disk. Producers lose records only after their own delivery time-out.",
    ),
    "producers_slowed": Page(
        "The disk is short of space, and segments leave it for the object store: until there is "
        "room, producers are limited to a rate that this keeps up with, as by a quota "
        "(throttle_ms in their answers, horolog_quota_throttled_requests_total with "
        "quota=disk_space). Nothing is refused. The line comes at most once a minute.",
        "Nothing, where it passes. Where it lasts, the store takes less than producers send: give "
        "the data directory a larger disk, or the store a better line; horolog tier status "
        "shows what waits.",
    ),
    "disk_has_room": Page("There is space above the reserve again: records are taken in."),
    "disk_space_unknown": Page(
        "The system does not report the free space. The last known value is assumed.",
        "Look at the disk: was it unmounted, does a network file system hang?",
    ),
    "ballast_released": Page(
        "Something else has filled the disk to the last blocks, so the broker gave up its ballast: "
        "offsets, deletions and checkpoints continue with that space.",
        "Make room soon. The ballast comes back by itself once there is.",
    ),
    "ballast_failed": Page(
        "The ballast file could not be written. Nothing depends on it until the disk is full.",
        "Look at the disk.",
    ),
    "fsync_failed": Page(
        "The disk could not make a log's bytes durable. The first such error is final: the system "
        "may have dropped them although a second try would succeed. The partition takes no more "
        "records; nothing that was not durable is acknowledged. Reading goes on.",
        "Look at the disk and the system's log. Once it works again, restart the broker: it "
        "reads the log back from the disk and continues after what is really there.",
    ),
    "write_refused": Page(
        "The disk refused to take a batch (error). Nothing of it was stored, and its producer gets "
        "KAFKA_STORAGE_ERROR, which it may send again; /readyz says so for a minute. The next "
        "write may succeed. There is one line a minute, whatever the number of refusals "
        "(horolog_refused_writes_total).",
        "Look at the disk and the system's log: a file system that has found an error is often "
        "mounted read-only from then on.",
    ),
    "sidecar_file_unreadable": Page(
        "A file beside the logs (a checkpoint, a metadata file) could not be read at the start. "
        "It counts as absent and is rebuilt; logs are recovered from their own bytes.",
        "Find the cause: a crash of the machine does not damage such a file.",
        formerly="damage_found",
    ),
    "logs_recovered": Page(
        "The stop before this start was not clean, so the ends of logs were read again (logs, "
        "horolog_recovered_logs). Batches of which bytes were missing were cut off the ends of "
        "cut_logs of them (cut_bytes, horolog_recovery_cut_bytes; most_cut names those that lost "
        "most): they had never been durable, and no acknowledgement had promised that.",
        "Nothing. What was acknowledged earlier than the topic's durability promises may be "
        "gone after a power cut: horolog.durability says how much that is.",
    ),
    "log_damaged": Page(
        "The start found damage in a log: a batch (detail) that had been durable, or that sound "
        "ones follow, is not what was written. Nothing was changed. Records before it are "
        "served; the partition takes no writes, also after the next start "
        "(horolog_log_offline), and producers receive KAFKA_STORAGE_ERROR.",
        "The disk is going bad, or did not keep what it said it had. Copy the partition's "
        "directory away, run horolog verify on it, and restore the segment or the directory from "
        "a backup while the broker is stopped; else read what is there and delete the topic. A "
        "node of a fleet makes the log again from what is committed, by itself.",
    ),
    "log_damage_found": Page(
        "The check of closed segments (horolog.scrub.interval.ms) found bytes of a log that are "
        "not what was written. Nothing was changed. /api/scrub lists all that is known.",
        f"The disk is going bad: replace it. {_RESTORE}",
    ),
    "damage_not_served": Page(
        "A consumer asked for bytes of a log that are not what was written: a batch does not have "
        "its CRC, or its offsets are out of order. It received CORRUPT_MESSAGE; batches before it "
        "are served, and so are all other partitions. Bytes left by an unclean stop are checked "
        "before their first read.",
        f"The disk is going bad: replace it. {_RESTORE} A consumer that may skip the batch seeks "
        "to an offset after it.",
    ),
    "log_file_wrong": Page(
        "The check of closed segments found an index or zone map that contradicts its log. "
        "Records are safe; searches compare an index with the log before they use it.",
        "A restart after an unclean stop rebuilds it; or stop the broker, remove the file "
        "(never the .log), and start again. Rot in one file may mean rot in others: look at the "
        "disk.",
    ),
    "scrub_began": Page("A pass over all closed segments begins, to look for rot."),
    "scrub_ended": Page(
        "The pass has read every closed segment. faulty_logs counts those with findings, which "
        "/api/scrub lists."
    ),
    "scrub_not_remembered": Page(
        "The progress of the pass could not be stored: a restart would read some logs again. "
        "Nothing else depends on it.",
        "Look at the disk: is it full?",
    ),
    "old_segments_upgraded": Page(
        "Segments in message format 0 or 1 (of a Kafka before 0.11) were rewritten in format "
        "2 when their logs were opened. Offsets, times, keys and values stayed.",
        formerly="old_segments_written_anew",
    ),
    "settings_left_behind": Page(
        "A topic was deleted, but its settings are still stored: the disk refused, or in a fleet "
        "another node changed settings at that moment, or PostgreSQL did not answer. No topic gets "
        "them: one of that name that is made again has its own, and a broker alone drops them at "
        "the next start."
    ),
    "directories_left_behind": Page(
        "A topic was deleted, but directories of it could not be renamed away. Clients do not see "
        "it any more, and the next start removes them.",
        "Look at the disk if it happens again.",
    ),
}
