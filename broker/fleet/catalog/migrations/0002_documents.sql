-- What clients set beside topics, as whole texts: settings, quotas, users. A change names the version that it was made of.
CREATE TABLE document (
  name text PRIMARY KEY,
  version bigint NOT NULL,
  content bytea NOT NULL
);

-- Addresses by listener, each as "NAME HOST PORT".
ALTER TABLE node ADD COLUMN listeners text[] NOT NULL DEFAULT '{}';

ALTER TABLE fleet ADD COLUMN producer_ids_below bigint NOT NULL DEFAULT 0;

-- True when the document has this content, as the version behind `before`; 0 is before the first one.
CREATE FUNCTION put_document_v1(called text, before bigint, body bytea) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO document VALUES (called, 0, '') ON CONFLICT DO NOTHING;
  UPDATE document SET version = before + 1, content = body WHERE name = called AND version = before;
  IF NOT FOUND THEN
    RETURN EXISTS (SELECT FROM document WHERE name = called AND version = before + 1 AND content = body);
  END IF;
  UPDATE fleet SET topics_version = topics_version + 1;
  PERFORM pg_notify('horolog_topics', '');
  RETURN true;
END $$;

-- True when the topic has these further partitions behind the first `had`.
CREATE FUNCTION grow_topic_v1(ti uuid, had int, sid int[]) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  UPDATE topic SET partitions = had + cardinality(sid) WHERE topic_id = ti AND partitions = had;
  IF NOT FOUND THEN
    RETURN EXISTS (SELECT FROM topic WHERE topic_id = ti AND partitions = had + cardinality(sid));
  END IF;
  INSERT INTO part SELECT ti, had + n - 1, s FROM unnest(sid) WITH ORDINALITY u(s, n);
  UPDATE fleet SET topics_version = topics_version + 1;
  PERFORM pg_notify('horolog_topics', '');
  RETURN true;
END $$;

-- The log start of a partition, from its owner: 'ok', or why not. Spans wholly below it go; it never falls.
CREATE FUNCTION trim_v1(me int, inc bigint, shard_of int, ep int, ti uuid, pa int, start bigint, keep interval)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE gn int[]; gi bigint[]; gs bigint[];
BEGIN
  PERFORM 1 FROM node WHERE node_id = me AND incarnation = inc AND NOT fenced FOR SHARE;
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM 1 FROM shard WHERE shard_id = shard_of AND epoch = ep AND owner = me AND incarnation = inc FOR SHARE;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  IF NOT EXISTS (SELECT FROM part WHERE topic_id = ti AND part = pa AND shard_id = shard_of) THEN
    RETURN 'no partition'; END IF;
  IF start > end_of_v1(ti, pa) THEN RETURN 'offsets'; END IF;
  UPDATE part SET log_start = start WHERE topic_id = ti AND part = pa AND log_start < start;
  IF NOT FOUND THEN RETURN 'already'; END IF;
  WITH spans AS (DELETE FROM wal_span WHERE topic_id = ti AND part = pa AND last_offset < start
    RETURNING node_id, incarnation, seq)
  SELECT array_agg(node_id), array_agg(incarnation), array_agg(seq) INTO gn, gi, gs
    FROM (SELECT DISTINCT * FROM spans) g;
  PERFORM forget_v1(gn, gi, gs, keep);
  RETURN 'ok';
END $$;
