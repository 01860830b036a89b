-- Which database this is, and on which timeline: a restore to a moment begins another one, and so does a standby that takes
-- over. Commits may be missing then.
CREATE FUNCTION history_v1() RETURNS text LANGUAGE sql AS $$
  SELECT system_identifier || '/' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) FROM pg_control_system()
$$;

-- The history that the rows go by; empty before the first connection of a broker that knows this.
ALTER TABLE fleet ADD history text NOT NULL DEFAULT '';
ALTER TABLE fleet ALTER history SET DEFAULT history_v1();

-- True when the database has another history than the rows, which go by it from now on. Nodes, their disks, clients and the
-- store may know more than the rows: numbers that were given out, and that the rows do not have. So all that rises goes on
-- far behind that, and each node begins another life.
CREATE FUNCTION follow_history_v1() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  present text := history_v1();
  far CONSTANT int := 65536;
BEGIN
  IF (SELECT history FROM fleet) = present THEN RETURN false; END IF;
  UPDATE fleet SET history = present, topics_version = topics_version + far,
      producer_ids_below = producer_ids_below + far::bigint * far
    WHERE history <> present;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE node SET incarnation = incarnation + far, fenced = true;
  UPDATE shard SET epoch = epoch + far;
  UPDATE document SET version = version + far WHERE version > 0;
  RETURN true;
END $$;
