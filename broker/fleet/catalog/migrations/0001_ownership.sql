-- Rows that the brokers of a fleet agree by. A later migration only adds; a changed function gets another name.

CREATE TABLE fleet (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  fleet_id uuid NOT NULL,
  cluster_id text NOT NULL,
  shards int NOT NULL CHECK (shards > 0),
  topics_version bigint NOT NULL DEFAULT 0
);

-- A lease is a count that goes on: who watches it measures by his own clock, so that no wall clock decides anything.
-- Renewals are frequent updates in place: most of a page stays free for them.
CREATE TABLE node (
  node_id int PRIMARY KEY,
  incarnation bigint NOT NULL,
  directory_id uuid NOT NULL,
  host text NOT NULL,
  port int NOT NULL,
  version text NOT NULL,
  renewals bigint NOT NULL DEFAULT 0,
  renewed timestamptz NOT NULL DEFAULT clock_timestamp(),
  fenced boolean NOT NULL DEFAULT false,
  draining boolean NOT NULL DEFAULT false
) WITH (fillfactor = 20);

CREATE TABLE shard (
  shard_id int PRIMARY KEY,
  owner int,
  incarnation bigint,
  epoch int NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE topic (
  topic_id uuid PRIMARY KEY,
  name text NOT NULL UNIQUE,
  partitions int NOT NULL CHECK (partitions > 0)
);

CREATE TABLE part (
  topic_id uuid REFERENCES topic ON DELETE CASCADE,
  part int,
  shard_id int NOT NULL REFERENCES shard,
  log_start bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (topic_id, part)
);
CREATE INDEX part_by_shard ON part (shard_id);

-- Commits of an incarnation, seq 0 being its registration. The newest one stays for good: the next names it.
CREATE TABLE wal (
  node_id int,
  incarnation bigint,
  seq bigint,
  crc bigint NOT NULL,
  object_key text,
  inline bytea,
  PRIMARY KEY (node_id, incarnation, seq)
);
ALTER TABLE wal ALTER inline SET STORAGE EXTERNAL;

-- Committed offsets that no segment in the store has yet, and where their bytes are in a commit.
CREATE TABLE wal_span (
  topic_id uuid,
  part int,
  base_offset bigint,
  last_offset bigint NOT NULL,
  epoch int NOT NULL,
  node_id int NOT NULL,
  incarnation bigint NOT NULL,
  seq bigint NOT NULL,
  pos int NOT NULL,
  len int NOT NULL,
  max_ts bigint NOT NULL,
  PRIMARY KEY (topic_id, part, base_offset),
  CHECK (last_offset >= base_offset AND len > 0)
);
CREATE INDEX wal_span_by_commit ON wal_span (node_id, incarnation, seq);

-- Newest snapshot of producers and leader epochs of a partition, in a commit's object.
CREATE TABLE state (
  topic_id uuid,
  part int,
  at_offset bigint NOT NULL,
  node_id int NOT NULL,
  incarnation bigint NOT NULL,
  seq bigint NOT NULL,
  pos int NOT NULL,
  len int NOT NULL,
  PRIMARY KEY (topic_id, part)
);
CREATE INDEX state_by_commit ON state (node_id, incarnation, seq);

-- Objects that no row names any longer, and when they may go.
CREATE TABLE trash (
  key text PRIMARY KEY,
  after timestamptz NOT NULL
);

CREATE FUNCTION end_of_v1(ti uuid, pa int) RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    (SELECT last_offset + 1 FROM wal_span WHERE topic_id = ti AND part = pa ORDER BY base_offset DESC LIMIT 1),
    (SELECT log_start FROM part WHERE topic_id = ti AND part = pa))
$$;

-- Answer to a commit that does not fit, and why: a copy of this very one may have been made since it was looked for.
CREATE FUNCTION misplaced_v1(me int, inc bigint, sq bigint, sum bigint, why text) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(
    (SELECT CASE WHEN crc = sum THEN 'already' ELSE 'conflict' END FROM wal
      WHERE node_id = me AND incarnation = inc AND seq = sq), why)
$$;

-- Head of every statement that counts: the incarnation lives, the commit is its next one, it owns the shards, and they
-- have the partitions. NULL: go on.
CREATE FUNCTION refusal_v1(me int, inc bigint, sq bigint, sum bigint, sid int[], sep int[], t uuid[], p int[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE n int; had bigint; newest bigint;
BEGIN
  PERFORM 1 FROM node WHERE node_id = me AND incarnation = inc AND NOT fenced FOR SHARE;
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  SELECT crc INTO had FROM wal WHERE node_id = me AND incarnation = inc AND seq = sq;
  IF FOUND THEN RETURN CASE WHEN had = sum THEN 'already' ELSE 'conflict' END; END IF;
  -- The newest row is never deleted: a late copy of a commit whose row is gone finds one behind it.
  SELECT max(seq) INTO newest FROM wal WHERE node_id = me AND incarnation = inc;
  IF newest IS DISTINCT FROM sq - 1 THEN RETURN misplaced_v1(me, inc, sq, sum, 'gap'); END IF;
  SELECT count(*) INTO n FROM (
    SELECT 1 FROM shard s JOIN unnest(sid, sep) w(id, ep) ON s.shard_id = w.id AND s.epoch = w.ep
      AND s.owner = me AND s.incarnation = inc ORDER BY s.shard_id FOR SHARE OF s) x;
  IF n <> cardinality(sid) THEN RETURN 'stale'; END IF;
  SELECT count(*) INTO n FROM (
    SELECT 1 FROM part JOIN (SELECT DISTINCT * FROM unnest(t, p)) u(t, p) ON part.topic_id = u.t AND part.part = u.p
      WHERE part.shard_id = ANY (sid) FOR KEY SHARE OF part) x;
  IF n <> (SELECT count(*) FROM (SELECT DISTINCT * FROM unnest(t, p)) u) THEN RETURN 'no partition'; END IF;
  RETURN NULL;
END $$;

-- A commit of bytes: they count when this returns 'ok', and at no other time.
CREATE FUNCTION commit_v1(me int, inc bigint, sq bigint, sum bigint, key text, body bytea, sid int[], sep int[],
  t uuid[], p int[], b bigint[], l bigint[], e int[], ps int[], ln int[], ts bigint[])
RETURNS text LANGUAGE plpgsql AS $$
DECLARE refused text;
BEGIN
  refused := refusal_v1(me, inc, sq, sum, sid, sep, t, p);
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  IF EXISTS (SELECT FROM unnest(t, p, b) u(t, p, b) WHERE u.b IS DISTINCT FROM end_of_v1(u.t, u.p)) THEN
    RETURN misplaced_v1(me, inc, sq, sum, 'offsets'); END IF;
  INSERT INTO wal VALUES (me, inc, sq, sum, key, body);
  INSERT INTO wal_span SELECT u.t, u.p, u.b, u.l, u.e, me, inc, sq, u.ps, u.ln, u.ts
    FROM unnest(t, p, b, l, e, ps, ln, ts) u(t, p, b, l, e, ps, ln, ts);
  RETURN 'ok';
END $$;

-- Of these commits those that nothing names go, their objects into the trash; of an incarnation's newest one the row stays.
CREATE FUNCTION forget_v1(n int[], i bigint[], s bigint[], keep interval) RETURNS void LANGUAGE sql AS $$
  WITH unnamed AS (
    SELECT w.node_id, w.incarnation, w.seq, w.object_key,
        EXISTS (SELECT FROM wal y WHERE y.node_id = w.node_id AND y.incarnation = w.incarnation AND y.seq > w.seq) AS older
      FROM wal w JOIN (SELECT DISTINCT * FROM unnest(n, i, s)) g(n, i, s)
        ON w.node_id = g.n AND w.incarnation = g.i AND w.seq = g.s
      WHERE NOT EXISTS (SELECT FROM wal_span x
          WHERE x.node_id = w.node_id AND x.incarnation = w.incarnation AND x.seq = w.seq)
        AND NOT EXISTS (SELECT FROM state x
          WHERE x.node_id = w.node_id AND x.incarnation = w.incarnation AND x.seq = w.seq)),
  gone AS (
    DELETE FROM wal w USING unnamed u
      WHERE u.older AND w.node_id = u.node_id AND w.incarnation = u.incarnation AND w.seq = u.seq),
  emptied AS (
    UPDATE wal w SET inline = NULL, object_key = NULL FROM unnamed u
      WHERE NOT u.older AND w.node_id = u.node_id AND w.incarnation = u.incarnation AND w.seq = u.seq)
  INSERT INTO trash SELECT object_key, clock_timestamp() + keep FROM unnamed WHERE object_key IS NOT NULL
    ON CONFLICT DO NOTHING
$$;

-- A checkpoint: an object with the bytes of older commits by partition, and with states. It takes their place.
CREATE FUNCTION checkpoint_v1(me int, inc bigint, sq bigint, sum bigint, key text, sid int[], sep int[],
  t uuid[], p int[], b bigint[], l bigint[], e int[], ps int[], ln int[], ts bigint[],
  st uuid[], sp int[], sa bigint[], spos int[], slen int[], keep interval)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE refused text; gn int[]; gi bigint[]; gs bigint[]; hn int[]; hi bigint[]; hs bigint[];
BEGIN
  refused := refusal_v1(me, inc, sq, sum, sid, sep, t || st, p || sp);
  IF refused IS NOT NULL THEN RETURN refused; END IF;
  -- What goes is exactly what comes: the same first and last offset, no span over an end, one epoch.
  IF EXISTS (SELECT FROM unnest(t, p, b, l, e) u(t, p, b, l, e) WHERE NOT EXISTS (
        SELECT FROM wal_span s WHERE s.topic_id = u.t AND s.part = u.p AND s.base_offset BETWEEN u.b AND u.l
        HAVING min(s.base_offset) = u.b AND max(s.last_offset) = u.l AND min(s.epoch) = u.e AND max(s.epoch) = u.e)) THEN
    RETURN misplaced_v1(me, inc, sq, sum, 'offsets'); END IF;
  INSERT INTO wal VALUES (me, inc, sq, sum, key, NULL);
  WITH gone AS (
    DELETE FROM wal_span s USING unnest(t, p, b, l) u(t, p, b, l)
      WHERE s.topic_id = u.t AND s.part = u.p AND s.base_offset BETWEEN u.b AND u.l
      RETURNING s.node_id, s.incarnation, s.seq)
  SELECT array_agg(node_id), array_agg(incarnation), array_agg(seq) INTO gn, gi, gs
    FROM (SELECT DISTINCT * FROM gone) g;
  SELECT array_agg(s.node_id), array_agg(s.incarnation), array_agg(s.seq) INTO hn, hi, hs
    FROM state s JOIN unnest(st, sp) v(t, p) ON s.topic_id = v.t AND s.part = v.p;
  INSERT INTO wal_span SELECT u.t, u.p, u.b, u.l, u.e, me, inc, sq, u.ps, u.ln, u.ts
    FROM unnest(t, p, b, l, e, ps, ln, ts) u(t, p, b, l, e, ps, ln, ts);
  INSERT INTO state SELECT v.t, v.p, v.a, me, inc, sq, v.ps, v.ln FROM unnest(st, sp, sa, spos, slen) v(t, p, a, ps, ln)
    ON CONFLICT (topic_id, part) DO UPDATE SET at_offset = excluded.at_offset, node_id = excluded.node_id,
      incarnation = excluded.incarnation, seq = excluded.seq, pos = excluded.pos, len = excluded.len;
  PERFORM forget_v1(gn || hn, gi || hi, gs || hs, keep);
  RETURN 'ok';
END $$;

-- Topics: 'ok', 'already' for the same one again, 'taken' when another topic has the name.
CREATE FUNCTION create_topic_v1(ti uuid, called text, sid int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE had uuid;
BEGIN
  INSERT INTO topic VALUES (ti, called, cardinality(sid)) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    SELECT topic_id INTO had FROM topic WHERE name = called;
    RETURN CASE WHEN had = ti THEN 'already' ELSE 'taken' END;
  END IF;
  INSERT INTO part SELECT ti, n - 1, s FROM unnest(sid) WITH ORDINALITY u(s, n);
  UPDATE fleet SET topics_version = topics_version + 1;
  PERFORM pg_notify('horolog_topics', '');
  RETURN 'ok';
END $$;

-- True when the topic was there. What its commits have goes with it.
CREATE FUNCTION delete_topic_v1(ti uuid, keep interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE gn int[]; gi bigint[]; gs bigint[];
BEGIN
  DELETE FROM topic WHERE topic_id = ti;
  IF NOT FOUND THEN RETURN false; END IF;
  WITH spans AS (DELETE FROM wal_span WHERE topic_id = ti RETURNING node_id, incarnation, seq),
    states AS (DELETE FROM state WHERE topic_id = ti RETURNING node_id, incarnation, seq)
  SELECT array_agg(node_id), array_agg(incarnation), array_agg(seq) INTO gn, gi, gs
    FROM (SELECT * FROM spans UNION SELECT * FROM states) g;
  PERFORM forget_v1(gn, gi, gs, keep);
  UPDATE fleet SET topics_version = topics_version + 1;
  PERFORM pg_notify('horolog_topics', '');
  RETURN true;
END $$;
