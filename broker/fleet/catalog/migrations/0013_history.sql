-- Which database this is, and on which timeline: a restore to a moment begins another one, and so does a standby that takes
-- over. Commits may be missing then. A server that shows no log of its own has no timeline here.
CREATE FUNCTION history_v1() RETURNS text LANGUAGE sql AS $$
  SELECT system_identifier || '/' || coalesce(left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), '')
    FROM pg_control_system()
$$;

-- The history that the rows go by; empty before the first connection of a broker that knows this.
ALTER TABLE fleet ADD history text NOT NULL DEFAULT '';
ALTER TABLE fleet ALTER history SET DEFAULT history_v1();
-- The version that a document begins with.
ALTER TABLE fleet ADD first_version bigint NOT NULL DEFAULT 1;

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
      first_version = first_version + far, producer_ids_below = producer_ids_below + far::bigint * far
    WHERE history <> present;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE node SET incarnation = incarnation + far, fenced = true;
  UPDATE shard SET epoch = epoch + far;
  UPDATE document SET version = version + far WHERE version > 0;
  RETURN true;
END $$;

-- True when the document has this content, as the version behind `before`; 0 is before the first one. Where there is none,
-- nodes may know one of a lost time: that is before the first one, too, and has another version.
CREATE OR REPLACE FUNCTION put_document_v1(called text, before bigint, body bytea) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE first bigint := (SELECT first_version FROM fleet);
BEGIN
  INSERT INTO document VALUES (called, 0, '') ON CONFLICT DO NOTHING;
  UPDATE document SET content = body, version = CASE version WHEN 0 THEN first ELSE before + 1 END
    WHERE name = called AND (version = before OR version = 0 AND before < first);
  IF NOT FOUND THEN
    RETURN EXISTS (SELECT FROM document WHERE name = called AND version = before + 1 AND content = body);
  END IF;
  UPDATE fleet SET topics_version = topics_version + 1;
  PERFORM pg_notify('horolog_topics', '');
  RETURN true;
END $$;
