-- The end of a partition of which all is in segments is that of these.
CREATE OR REPLACE FUNCTION end_of_v1(ti uuid, pa int) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    (SELECT last_offset + 1 FROM wal_span WHERE topic_id = ti AND part = pa ORDER BY base_offset DESC LIMIT 1),
    (SELECT greatest(log_start, copied_end) FROM part WHERE topic_id = ti AND part = pa))
$$;

-- All that one broker had, into a fleet that has nothing: 'ok', 'already' for the same again, 'taken' when there is
-- something, 'alive' when a node lives. The arrays behind `sid` have a place for each partition.
CREATE FUNCTION import_topics_v1(ti uuid[], called text[], counts int[], sid int[], pt uuid[], pp int[], starts bigint[],
  ends bigint[], epochs int[], numbers bigint[], docs text[], contents bytea[], ids_below bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE made text;
BEGIN
  PERFORM 1 FROM fleet FOR UPDATE;
  IF EXISTS (SELECT FROM node WHERE NOT fenced) THEN RETURN 'alive'; END IF;
  IF EXISTS (SELECT FROM topic WHERE topic_id <> ALL (ti)) THEN RETURN 'taken'; END IF;
  made := create_topics_v1(ti, called, counts, sid, '', 0, NULL);
  IF made <> 'ok' THEN RETURN made; END IF;
  UPDATE part SET log_start = u.s, copied_end = u.e, manifest_epoch = u.ep, manifest = u.n
    FROM unnest(pt, pp, starts, ends, epochs, numbers) u(t, p, s, e, ep, n) WHERE topic_id = u.t AND part.part = u.p;
  UPDATE shard SET epoch = greatest(epoch, m.ep)
    FROM (SELECT s, max(ep) AS ep FROM unnest(sid, epochs) u(s, ep) GROUP BY s) m WHERE shard_id = m.s;
  PERFORM put_document_v1(u.d, 0, u.c) FROM unnest(docs, contents) u(d, c);
  UPDATE fleet SET producer_ids_below = greatest(producer_ids_below, ids_below);
  RETURN 'ok';
END $$;
