-- The manifest that says which segments of a partition are in the store: the newest of its epoch that was named here.
-- Others may be there; they count for nothing.
ALTER TABLE part ADD COLUMN manifest_epoch int NOT NULL DEFAULT 0;
ALTER TABLE part ADD COLUMN manifest bigint NOT NULL DEFAULT 0;
ALTER TABLE part ADD COLUMN copied_end bigint NOT NULL DEFAULT 0;

-- The manifest of a partition, from its owner: 'ok', or why not. Spans whose offsets it covers go, but for the newest
-- one, which says where the partition ends.
CREATE FUNCTION name_manifest_v1(me int, inc bigint, shard_of int, ep int, ti uuid, pa int, nr bigint, upto bigint,
  keep interval)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE gn int[]; gi bigint[]; gs bigint[];
BEGIN
  PERFORM 1 FROM node WHERE node_id = me AND incarnation = inc AND NOT fenced FOR SHARE;
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM 1 FROM shard WHERE shard_id = shard_of AND epoch = ep AND owner = me AND incarnation = inc FOR SHARE;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  IF NOT EXISTS (SELECT FROM part WHERE topic_id = ti AND part = pa AND shard_id = shard_of) THEN
    RETURN 'no partition'; END IF;
  IF upto > end_of_v1(ti, pa) THEN RETURN 'offsets'; END IF;
  UPDATE part SET manifest_epoch = ep, manifest = nr, copied_end = greatest(copied_end, upto)
    WHERE topic_id = ti AND part = pa AND (manifest_epoch, manifest) < (ep, nr);
  IF NOT FOUND THEN RETURN 'already'; END IF;
  WITH spans AS (DELETE FROM wal_span s WHERE topic_id = ti AND part = pa AND last_offset < upto
      AND EXISTS (SELECT FROM wal_span y WHERE y.topic_id = ti AND y.part = pa AND y.base_offset > s.base_offset)
    RETURNING node_id, incarnation, seq)
  SELECT array_agg(node_id), array_agg(incarnation), array_agg(seq) INTO gn, gi, gs
    FROM (SELECT DISTINCT * FROM spans) g;
  PERFORM forget_v1(gn, gi, gs, keep);
  RETURN 'ok';
END $$;
