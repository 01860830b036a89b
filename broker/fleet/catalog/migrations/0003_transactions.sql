-- Transactions over nodes. A coordinator's newest order for a producer; an older one that comes late does nothing.
CREATE TABLE txn (
  producer_id bigint PRIMARY KEY,
  coordinator_shard int NOT NULL,
  coordinator_epoch int NOT NULL,
  number bigint NOT NULL,
  ordered timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);

-- Partitions of a transaction, from before their first record until their marker counts.
CREATE TABLE txn_part (
  producer_id bigint REFERENCES txn ON DELETE CASCADE,
  topic_id uuid,
  part int,
  producer_epoch int NOT NULL,
  coordinator_epoch int NOT NULL,
  number bigint NOT NULL,
  commits boolean,
  PRIMARY KEY (producer_id, topic_id, part),
  FOREIGN KEY (topic_id, part) REFERENCES part ON DELETE CASCADE
);
CREATE INDEX txn_part_by_part ON txn_part (topic_id, part);
CREATE INDEX txn_part_ended ON txn_part (producer_id) WHERE commits IS NOT NULL;

-- An order of the owner of a coordinator's shard: partitions join (`ends` NULL), or all that joined get a marker.
CREATE FUNCTION order_transaction_v1(me int, inc bigint, sid int, sep int, pid bigint, nr bigint, pe int, ends boolean,
  t uuid[], p int[])
RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM node WHERE node_id = me AND incarnation = inc AND NOT fenced FOR SHARE;
  IF NOT FOUND THEN RETURN 'fenced'; END IF;
  PERFORM 1 FROM shard WHERE shard_id = sid AND epoch = sep AND owner = me AND incarnation = inc FOR SHARE;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  INSERT INTO txn VALUES (pid, sid, sep, nr)
    ON CONFLICT (producer_id) DO UPDATE SET coordinator_shard = sid, coordinator_epoch = sep, number = nr,
        ordered = clock_timestamp()
      WHERE (txn.coordinator_epoch, txn.number) < (sep, nr);
  IF NOT FOUND THEN
    RETURN CASE WHEN EXISTS (SELECT FROM txn WHERE producer_id = pid AND coordinator_epoch = sep AND number = nr)
      THEN 'already' ELSE 'late' END;
  END IF;
  IF ends IS NULL THEN
    INSERT INTO txn_part SELECT pid, part.topic_id, part.part, pe, sep, nr, NULL
        FROM part JOIN (SELECT DISTINCT * FROM unnest(t, p)) u(t, p) ON part.topic_id = u.t AND part.part = u.p
        FOR KEY SHARE OF part
      ON CONFLICT (producer_id, topic_id, part) DO UPDATE SET producer_epoch = pe, coordinator_epoch = sep, number = nr
        WHERE txn_part.commits IS NULL;
    RETURN 'ok';
  END IF;
  UPDATE txn_part SET producer_epoch = pe, coordinator_epoch = sep, number = nr, commits = ends WHERE producer_id = pid;
  PERFORM pg_notify('horolog_transactions_' || o.owner, '') FROM (
    SELECT DISTINCT owner FROM txn_part x JOIN part USING (topic_id, part) JOIN shard USING (shard_id)
      WHERE x.producer_id = pid AND owner IS NOT NULL) o;
  RETURN 'ok';
END $$;

-- These markers count: their rows go, and who coordinates hears of it.
CREATE FUNCTION marked_v1(pid bigint[], t uuid[], p int[], ep int[], nr bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE done bigint[];
BEGIN
  WITH gone AS (
    DELETE FROM txn_part x USING unnest(pid, t, p, ep, nr) u(pid, t, p, ep, nr)
      WHERE x.producer_id = u.pid AND x.topic_id = u.t AND x.part = u.p AND x.coordinator_epoch = u.ep AND x.number = u.nr
        AND x.commits IS NOT NULL
      RETURNING x.producer_id)
  SELECT array_agg(DISTINCT producer_id) INTO done FROM gone;
  PERFORM pg_notify('horolog_transactions_' || o.owner, '') FROM (
    SELECT DISTINCT owner FROM txn JOIN shard ON shard_id = coordinator_shard
      WHERE producer_id = ANY (done) AND owner IS NOT NULL) o;
END $$;
