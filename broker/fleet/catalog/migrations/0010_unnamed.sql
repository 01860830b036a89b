-- Commits that nothing names go, also where two statements at one time each take a last name: neither sees what the
-- other has removed before it has ended. So the rows that still have names are locked, in order, and looked at once more:
-- whoever is last sees that nothing is left.
CREATE OR REPLACE FUNCTION forget_v1(n int[], i bigint[], s bigint[], keep interval) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM wal w JOIN (SELECT DISTINCT * FROM unnest(n, i, s)) g(gn, gi, gs)
      ON w.node_id = g.gn AND w.incarnation = g.gi AND w.seq = g.gs
    WHERE EXISTS (SELECT FROM wal_span x
        WHERE x.node_id = w.node_id AND x.incarnation = w.incarnation AND x.seq = w.seq)
      OR EXISTS (SELECT FROM state x
        WHERE x.node_id = w.node_id AND x.incarnation = w.incarnation AND x.seq = w.seq)
    ORDER BY w.node_id, w.incarnation, w.seq FOR UPDATE OF w;
  WITH unnamed AS (
    SELECT w.node_id, w.incarnation, w.seq, w.object_key,
        EXISTS (SELECT FROM wal y WHERE y.node_id = w.node_id AND y.incarnation = w.incarnation AND y.seq > w.seq) AS older
      FROM wal w JOIN (SELECT DISTINCT * FROM unnest(n, i, s)) g(gn, gi, gs)
        ON w.node_id = g.gn AND w.incarnation = g.gi AND w.seq = g.gs
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
    ON CONFLICT DO NOTHING;
END $$;

-- Number of commits that nothing names and that were left behind, of which some go: what an earlier version has missed,
-- and rows that were kept for being the newest of their incarnation.
CREATE FUNCTION sweep_wal_v1(at_most int, keep interval) RETURNS int LANGUAGE plpgsql AS $$
DECLARE gn int[]; gi bigint[]; gs bigint[];
BEGIN
  SELECT array_agg(node_id), array_agg(incarnation), array_agg(seq) INTO gn, gi, gs FROM (
    SELECT node_id, incarnation, seq FROM wal w
      WHERE NOT EXISTS (SELECT FROM wal_span x
          WHERE x.node_id = w.node_id AND x.incarnation = w.incarnation AND x.seq = w.seq)
        AND NOT EXISTS (SELECT FROM state x
          WHERE x.node_id = w.node_id AND x.incarnation = w.incarnation AND x.seq = w.seq)
        AND (inline IS NOT NULL OR object_key IS NOT NULL OR EXISTS (SELECT FROM wal y
          WHERE y.node_id = w.node_id AND y.incarnation = w.incarnation AND y.seq > w.seq))
      ORDER BY node_id, incarnation, seq LIMIT at_most FOR UPDATE OF w SKIP LOCKED) g;
  PERFORM forget_v1(gn, gi, gs, keep);
  RETURN coalesce(cardinality(gn), 0);
END $$;
