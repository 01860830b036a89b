-- The incarnation in which a node said that it has partitions join transactions by themselves. A node of an earlier
-- version begins another one and says nothing.
ALTER TABLE node ADD joins_of bigint;
