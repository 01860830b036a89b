-- By how much a node's clock is ahead of this database's, as it says: to be shown, nothing goes by it.
ALTER TABLE node ADD ahead_ms bigint;
