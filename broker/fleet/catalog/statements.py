"""Statements of the catalog, each of which is one round trip and done as a whole.

Between two statements of a transaction a stopped client would hold the locks of its rows, and a
take-over would wait for it.
"""

REGISTER = """
WITH alive AS (
  INSERT INTO node (node_id, incarnation, directory_id, host, port, version, listeners, joins_of)
    VALUES ($1, 1, $2, $3, $4, $5, $6, CASE WHEN $7::boolean THEN 1 END)
  ON CONFLICT (node_id) DO UPDATE SET incarnation = node.incarnation + 1, fenced = false,
      directory_id = excluded.directory_id, host = excluded.host, port = excluded.port,
      version = excluded.version, listeners = excluded.listeners, renewals = 0,
      renewed = excluded.renewed,
      joins_of = CASE WHEN $7::boolean THEN node.incarnation + 1 END
    WHERE node.fenced OR node.directory_id = excluded.directory_id
  RETURNING incarnation)
INSERT INTO wal (node_id, incarnation, seq, crc) SELECT $1, incarnation, 0, 0 FROM alive
  RETURNING incarnation
"""
RENEW = """
UPDATE node SET renewals = renewals + 1, renewed = clock_timestamp(), ahead_ms = $3
  WHERE node_id = $1 AND incarnation = $2 AND NOT fenced
  RETURNING (extract(epoch FROM renewed) * 1000)::bigint AS now_ms,
    (SELECT topics_version FROM fleet) AS topics_version
"""
NODES = """
SELECT node_id, incarnation, host, port, version, fenced, renewals, listeners, ahead_ms,
    draining OR coalesce(leaving_of = incarnation, false) AS draining,
    (extract(epoch FROM renewed) * 1000)::bigint AS renewed_ms,
    coalesce(joins_of = incarnation, false) AS joins
  FROM node ORDER BY node_id
"""
FENCE = """
WITH fenced AS (
  UPDATE node SET fenced = true
    WHERE node_id = $1 AND incarnation = $2 AND NOT fenced AND renewals = $3
    RETURNING node_id)
SELECT node_id, pg_notify('horolog_shards', '') FROM fenced
"""
RESIGN = """
WITH gone AS (
  UPDATE node SET fenced = true WHERE node_id = $1 AND incarnation = $2 RETURNING node_id)
SELECT pg_notify('horolog_shards', '') FROM gone
"""
DRAIN = """
WITH drained AS (
  UPDATE node SET draining = $2 WHERE node_id = $1 RETURNING node_id)
SELECT node_id, pg_notify('horolog_shards', '') FROM drained
"""
LEAVE = """
WITH leaving AS (
  UPDATE node SET leaving_of = $2
    WHERE node_id = $1 AND incarnation = $2 AND leaving_of IS DISTINCT FROM $2 RETURNING node_id)
SELECT pg_notify('horolog_shards', '') FROM leaving
"""
SHARDS = """
SELECT shard_id, owner, incarnation, epoch, coalesce(bytes_per_second, 0) AS bytes_per_second
  FROM shard LEFT JOIN shard_load USING (shard_id) ORDER BY shard_id
"""
REPORT_LOADS = "SELECT report_loads_v1($1, $2, $3, $4)"
TAKE = """
WITH me AS (
  SELECT FROM node WHERE node_id = $1 AND incarnation = $2 AND NOT fenced FOR SHARE),
free AS (
  SELECT shard_id FROM shard s WHERE NOT EXISTS (
      SELECT FROM node n
        WHERE n.node_id = s.owner AND n.incarnation = s.incarnation AND NOT n.fenced)
    ORDER BY shard_id LIMIT $3 FOR UPDATE SKIP LOCKED),
taken AS (
  UPDATE shard s SET owner = $1, incarnation = $2, epoch = epoch + 1 FROM free
    WHERE s.shard_id = free.shard_id AND EXISTS (SELECT FROM me) RETURNING s.shard_id, s.epoch)
SELECT shard_id, epoch, pg_notify('horolog_shards', '') FROM taken
"""
OWNED = "SELECT shard_id, epoch FROM shard WHERE owner = $1 AND incarnation = $2 ORDER BY shard_id"
GIVE = """
WITH lives AS (
  SELECT FROM node WHERE node_id = $5 AND incarnation = $6 AND NOT fenced
      AND leaving_of IS DISTINCT FROM incarnation FOR SHARE),
given AS (
  UPDATE shard SET owner = $5, incarnation = $6, epoch = epoch + 1
    WHERE shard_id = $3 AND epoch = $4 AND owner = $1 AND incarnation = $2
      AND EXISTS (SELECT FROM lives)
    RETURNING epoch)
SELECT epoch, pg_notify('horolog_shards', '') FROM given
"""
COMMIT = """
SELECT commit_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
"""
CHECKPOINT = """
SELECT checkpoint_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
  $16, $17, $18, $19, $20, $21::bigint * interval '1 ms')
"""
KEYS = "SELECT topic_id, part, shard_id FROM part WHERE shard_id = ANY ($1)"
PARTITIONS = """
SELECT topic_id, part, name, shard_id, log_start, manifest_epoch, manifest, copied_end
  FROM part JOIN topic USING (topic_id)
  WHERE shard_id = ANY ($1) ORDER BY topic_id, part
"""
SPANS = """
SELECT s.*, w.object_key FROM part JOIN wal_span s USING (topic_id, part)
    JOIN wal w USING (node_id, incarnation, seq)
  WHERE shard_id = ANY ($1) ORDER BY topic_id, part, base_offset
"""
STATES = """
SELECT s.*, w.object_key FROM part JOIN state s USING (topic_id, part)
    JOIN wal w USING (node_id, incarnation, seq)
  WHERE shard_id = ANY ($1)
"""
BODY = "SELECT inline FROM wal WHERE node_id = $1 AND incarnation = $2 AND seq = $3"
TOPICS = """
SELECT t.*, topics_version AS version FROM fleet LEFT JOIN (
    SELECT topic_id, name, array_agg(shard_id ORDER BY part) AS shards
      FROM topic JOIN part USING (topic_id) GROUP BY topic_id) t ON true
  ORDER BY name
"""
FACTS = "SELECT fleet_id, cluster_id, shards, topics_version FROM fleet"
VERSION = "SELECT topics_version FROM fleet"
CREATE_TOPICS = "SELECT create_topics_v1($1, $2, $3, $4, $5, $6, $7)"
IMPORT_TOPICS = "SELECT import_topics_v2($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
DELETE_TOPIC = "SELECT delete_topic_v1($1, $2::bigint * interval '1 ms')"
GROW_TOPIC = "SELECT grow_topic_v1($1, $2, $3)"
TRIM = "SELECT trim_v1($1, $2, $3, $4, $5, $6, $7, $8::bigint * interval '1 ms')"
NAME_MANIFEST = """
SELECT name_manifest_v1($1, $2, $3, $4, $5, $6, $7, $8, $9::bigint * interval '1 ms')
"""
DOCUMENTS = """
SELECT name, version, content FROM document d WHERE version > 0 AND NOT EXISTS (
    SELECT FROM unnest($1::text[], $2::bigint[]) k(name, version)
      WHERE k.name = d.name AND k.version = d.version)
  ORDER BY name
"""
PUT_DOCUMENT = "SELECT put_document_v1($1, $2, $3)"
PRODUCER_IDS = """
UPDATE fleet SET producer_ids_below = producer_ids_below + $1
  RETURNING producer_ids_below - $1 AS first
"""
PRODUCER_IDS_END = "SELECT producer_ids_below FROM fleet"
TRASH = "SELECT key FROM trash WHERE after < clock_timestamp() ORDER BY after LIMIT $1"
UNNAMED = """
SELECT k.key FROM unnest($1::text[]) k(key)
  WHERE NOT EXISTS (SELECT FROM wal w WHERE w.object_key = k.key)
    AND NOT EXISTS (SELECT FROM trash t WHERE t.key = k.key)
"""
SWEEP_WAL = "SELECT sweep_wal_v1($1, $2::bigint * interval '1 ms')"
REMOVED = "DELETE FROM trash WHERE key = ANY ($1)"
