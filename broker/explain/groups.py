"""Pages of consumer groups and transactions."""

from collections.abc import Mapping

from broker.explain.page import Page

_COORDINATOR_LOG = (
    "Look at the partition's log with horolog verify. Clients of these groups or transactions "
    "receive COORDINATOR_NOT_AVAILABLE and retry until the broker is restarted."
)

PAGES: Mapping[str, Page] = {
    "group_generation": Page("A group was rebalanced: it has a new generation of members."),
    "group_member_expired": Page(
        "A member sent no heartbeat within its session time-out; the group continues without it, "
        "and its partitions go to others.",
        "Often a consumer that works too long between two polls, or a long garbage collection.",
    ),
    "group_member_never_synced": Page(
        "A member joined its group and never asked for its assignment; the group continues."
    ),
    "group_not_stored": Page(
        "A change of a group could not be written to __consumer_offsets; its members receive an "
        "error code and retry.",
        "Look at the disk.",
    ),
    "groups_not_loaded": Page(
        "A partition of __consumer_offsets could not be read after the start, so its groups are "
        "not served.",
        _COORDINATOR_LOG,
    ),
    "group_records_unreadable": Page(
        "Some records of __consumer_offsets are unknown to this version; they were left out.",
        "A newer broker has written them, or a client has: compare the versions.",
    ),
    "state_not_restored": Page(
        "The stored state of one group or transactional id contradicts itself, so it was left out "
        "at the start; owner names it. Offsets of a group are kept, its members join again; a "
        "producer begins again with InitProducerId. /readyz?verbose says how many there are.",
        "A client or a fault has written such records: horolog dump shows them. Keep the line.",
    ),
    "offsets_left_behind": Page(
        "A topic was deleted, but offsets that a group had committed for it could not be. The next "
        "start removes them."
    ),
    "offsets_not_expired": Page(
        "Offsets that are past offsets.retention.minutes could not be removed; it is tried again."
    ),
    "state_topic_not_made": Page(
        "__consumer_offsets, __transaction_state or __share_group_state could not be made, so "
        "groups or transactions cannot be served. It is tried again with the next request.",
        "error says why: horolog.max.partitions leaves no room for it, or the disk refuses.",
    ),
    "consumer_group_epoch": Page("A group of the new protocol (KIP-848) has a new assignment."),
    "streams_group_epoch": Page(
        "A streams group (KIP-1071) has a new epoch: its tasks are assigned again."
    ),
    "streams_member_silent": Page(
        "A thread of a Kafka Streams application sent no heartbeat within its session time-out; "
        "its tasks go to others.",
        "streams.session.timeout.ms of the group says how long that is.",
    ),
    "streams_member_late": Page(
        "A thread of a Kafka Streams application did not give tasks back within its rebalance "
        "time-out; it is taken out of the group and joins again.",
        "Often records that take long: see max.poll.interval.ms of the application.",
    ),
    "streams_topic_made": Page(
        "The broker made a topic that a Kafka Streams application needs: of a repartition, or a "
        "changelog of a state."
    ),
    "streams_topic_not_made": Page(
        "A topic that a Kafka Streams application needs could not be made, so the application "
        "waits; it is tried again with a later heartbeat.",
        "error says why: a quota, horolog.max.partitions, or a setting that the application asks "
        "for.",
    ),
    "share_group_epoch": Page("A share group (KIP-932) has a new epoch: it is assigned again."),
    "dead_letter_failed": Page(
        "A record of a share group is to be given up, but its dead letter could not be written. "
        "Nobody gets the record meanwhile; it is tried again, at last every five minutes.",
        "error says why. The topic needs errors.deadletterqueue.group.enable=true. To give up "
        "without letters, remove errors.deadletterqueue.topic.name from the group.",
    ),
    "dead_letter_topic_made": Page(
        "A topic for dead letters of share groups was missing and was made "
        "(errors.deadletterqueue.auto.create.topics.enable).",
    ),
    "letters_redriven": Page(
        "Dead letters of a share group were sent back to the topics of their origin, as the user "
        "in principal asked for. passed_over are records of the letters' topic that were not: "
        "letters of other groups, records that are no letters, letters whose topic is gone, and "
        "letters without a copy whose record is gone.",
    ),
    "redrive_stopped": Page(
        "A redrive of dead letters did not get over the letter at this offset. What was sent back "
        "before is remembered; the next redrive goes on there, and repeats nothing.",
        "error says why: a right that is missing, a time that the topic of origin refuses "
        "(message.timestamp.before.max.ms), a record that is too large for it. Then ask again.",
    ),
    "share_member_silent": Page(
        "A member of a share group sent no heartbeat for group.share.session.timeout.ms and was "
        "removed; its part falls to the others.",
        "If it happens often, look for long pauses of the client.",
    ),
    "share_state_not_made": Page(
        "The state of a partition that a share group reads could not be made, so the partition is "
        "not read yet; the next heartbeats try again.",
        "Look at error, and at the disk of the data directory.",
    ),
    "share_partition_not_loaded": Page(
        "The state of a partition that a share group reads could not be read, or its start could "
        "not be decided; its members are answered with an error and try again.",
        "Look at error, and at the disk of the data directory.",
    ),
    "share_lock_ended": Page(
        "A member of a share group did not say in time what became of records that it got; they "
        "are delivered again, or given up after share.delivery.count.limit.",
        "If it happens often, raise share.record.lock.duration.ms, or have the client renew.",
    ),
    "consumer_member_silent": Page(
        "A member of a group of the new protocol sent no heartbeat in time, and was removed."
    ),
    "consumer_member_late": Page(
        "A member did not release its partitions within its rebalance time-out, and was removed.",
        "Often a consumer that works too long between two polls (max.poll.interval.ms).",
    ),
    "group_upgraded": Page("A group went from the classic protocol to the new one (KIP-848)."),
    "group_downgraded": Page("A group went from the new protocol back to the classic one."),
    "topics_not_matched": Page(
        "The regular expression of a group could not be matched with the topics; it keeps those "
        "it had.",
        "This is a fault of the broker: keep the line, and horolog bundle.",
    ),
    "transaction_timed_out": Page(
        "A producer left its transaction open for longer than its time-out, so it was aborted; "
        "the producer is fenced.",
        "Often a producer that died. One that lives needs a larger transaction.timeout.ms.",
    ),
    "transaction_not_ended": Page(
        "A transaction that timed out could not be aborted yet; it is tried again.",
        "Look at the disk if it goes on.",
    ),
    "transaction_not_completed": Page(
        "The end of a transaction was decided, but its markers are not all written yet; it is "
        "tried again. Readers of committed data wait until then.",
        "Look at the disk if it goes on.",
    ),
    "transaction_without_owner": Page(
        "After a start a partition had an open transaction that no transactional id knows of: left "
        "by a power cut before its first acknowledgement. It is aborted, so that readers of "
        "committed data continue. Without __transaction_state such transactions stay open.",
    ),
    "marker_not_written": Page(
        "The marker that ends a transaction could not be written yet; it is tried again.",
        "Look at the disk if it goes on.",
    ),
    "transactions_not_loaded": Page(
        "A partition of __transaction_state could not be read after the start, so its "
        "transactional ids are not served.",
        _COORDINATOR_LOG,
    ),
    "transaction_records_unreadable": Page(
        "Some records of __transaction_state are unknown to this version; they were left out.",
        "A newer broker has written them: compare the versions.",
    ),
    "share_states_not_loaded": Page(
        "A partition of __share_group_state could not be read after the start, so its share "
        "partitions are not served.",
        _COORDINATOR_LOG,
    ),
    "share_records_unreadable": Page(
        "Some records of __share_group_state are unknown to this version; they were left out.",
        "A newer broker has written them: compare the versions.",
    ),
    "share_state_left_behind": Page(
        "A topic was deleted, but what share groups remembered of it could not be. The next start "
        "removes it."
    ),
    "share_state_not_pruned": Page(
        "A partition of __share_group_state could not be made shorter; it is tried again at the "
        "next interval. Nothing that it remembers is lost.",
        "Look at the disk if it goes on.",
    ),
    "transactional_id_not_expired": Page(
        "A transactional id that is not used any more could not be removed; it is tried again."
    ),
}
