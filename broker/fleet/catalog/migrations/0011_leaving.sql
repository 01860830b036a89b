-- The incarnation that gives all its shards away and ends: it gets none meanwhile. A node's next incarnation is another one.
ALTER TABLE node ADD leaving_of bigint;
