"""Pages of a fleet: several brokers that agree by rows in PostgreSQL."""

from collections.abc import Mapping

from broker.explain.page import Page

PAGES: Mapping[str, Page] = {
    "fleet_life_begins": Page(
        "The node is registered and has a new incarnation. It takes its share of the partitions "
        "now; what an earlier incarnation was doing counts no longer unless it was committed."
    ),
    "fleet_life_ends": Page(
        "The incarnation may commit nothing any more: other nodes saw no renewal of its lease for "
        "too long, or the catalog refused a commit. Clients whose writes were waiting are answered "
        "with a retriable error. The node begins a new incarnation by itself.",
        "If it happens again and again, look at the way to PostgreSQL, and for a second process "
        "with the same node.id.",
    ),
    "fleet_node_id_taken": Page(
        "Another process lives with this node.id, on another data directory. This one waits until "
        "the other one has not renewed its lease for a while, and goes on then.",
        "Give each broker of the fleet a node.id of its own.",
    ),
    "fleet_lease_not_renewed": Page(
        "PostgreSQL did not answer a renewal of the lease; it is tried again. Writes wait for a "
        "commit meanwhile, reads go on for a while. Other nodes fence this one when they reach "
        "PostgreSQL and it does not.",
        "Look at PostgreSQL and at the way to it.",
    ),
    "fleet_round_failed": Page(
        "A look at the other nodes and at its own partitions, or a checkpoint, ended in an error "
        "of PostgreSQL or the store, or the disk refused a topic that was made: the others are "
        "served. The next round tries again; nothing is lost.",
        "Read the reason if it goes on.",
    ),
    "transaction_not_joined": Page(
        "A partition of this node did not join a transaction: the node of the coordinator does not "
        "let this one ask. The producer hears INVALID_TXN_STATE.",
        "Give the user of horolog.fleet.client.config, or User:ANONYMOUS of a plain listener, the "
        "right ClusterAction, or name it in super.users.",
    ),
    "fleet_store_away": Page(
        "The bytes of a commit did not get into the object store. They went into PostgreSQL "
        "instead, from where the next checkpoint moves them.",
        "Look at the store: PostgreSQL grows meanwhile.",
    ),
    "fleet_rows_full": Page(
        "The object store takes nothing, and horolog.fleet.rows.max.bytes of this node's records "
        "wait for it in PostgreSQL. Producers get NOT_ENOUGH_REPLICAS and try again; what is "
        "committed is served, and groups and transactions go on.",
        "See to the store. Raise horolog.fleet.rows.max.bytes if the database's disk has room.",
    ),
    "fleet_rows_free": Page(
        "A quarter of horolog.fleet.rows.max.bytes is free again: this node takes records.",
    ),
    "fleet_shard_moved_for_load": Page(
        "This node took more bytes from producers than another, by horolog.fleet.balance.bytes a "
        "second at least, and gave it a shard that brings the two nearest to each other. Clients "
        "follow to the next leader; an idle shard may come back for it.",
        "Nothing. With one busy partition alone nothing moves: give its topic more of them.",
    ),
    "fleet_shard_renewed": Page(
        "The disk of this node has failed for a log of the shard (an fsync, or a write that its "
        "device refused), which takes no records any more. The node takes the shard in a new "
        "epoch, removes that log and makes it again from what is committed. Clients look for the "
        "leader meanwhile.",
        "Look at the disk. While it goes on failing this happens once a minute; a node that cannot "
        "make the log again gives its shards away (fleet_disk_failed).",
    ),
    "fleet_disk_failed": Page(
        "The device of this node's data directory, or its file system, has failed: a log could not "
        "be made there (EIO, EROFS, ENODEV, ENXIO). The node gives its shards to others and "
        "stops, with exit status 4. While there is no other it leads what it still can.",
        "Repair or replace the disk and start the node: all that is committed comes back "
        "from PostgreSQL and the store.",
    ),
    "fleet_schema_changed": Page(
        "This version's tables and functions were made in the database of the fleet. Earlier ones "
        "stay as they were, so that nodes of the version before go on."
    ),
    "fleet_database_restored": Page(
        "The database of the fleet is another one than before, or on another timeline: it was "
        "restored, or a standby took over. Commits that it does not have are lost, though they "
        "were acknowledged. Epochs, producer ids and versions go on far behind all that were given "
        "out, and each node begins another life: nothing lost is taken for what comes next.",
        "If the standby was a synchronous one, or it is the first start of this version, nothing "
        "is lost. Else run horolog fleet verify, and read docs/fleet.md: After a restore.",
    ),
    "fleet_catalog_away": Page(
        "The node starts and PostgreSQL does not answer. It tries again each second and serves "
        "nobody until then: what it may serve, only the rows say.",
        "Look at PostgreSQL, at the way to it and at horolog.fleet.url.",
    ),
    "fleet_settings_refused": Page(
        "Settings that were made on another node cannot be had here: this node's own settings or "
        "version do not allow them. It goes on with those that it has.",
        "Read the reason; give all nodes the same version and the same settings.",
    ),
    "fleet_copy_not_written": Page(
        "What was decided in the fleet (users, ACLs, quotas, tokens or settings: document) counts "
        "on this node, but its disk refused the copy. Nothing is lost: PostgreSQL has it, and a "
        "start asks there before it serves clients.",
        "Look at the disk.",
    ),
}
