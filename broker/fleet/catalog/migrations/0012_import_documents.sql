-- As `import_topics_v1`, but 'documents' when there is a text that clients have set, and that is not the same in what is
-- to come: it would stay, and what is to come would not count. Without topics the texts come alone.
CREATE FUNCTION import_topics_v2(ti uuid[], called text[], counts int[], sid int[], pt uuid[], pp int[], starts bigint[],
  ends bigint[], epochs int[], numbers bigint[], docs text[], contents bytea[], ids_below bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE made text;
BEGIN
  PERFORM 1 FROM fleet FOR UPDATE;
  IF EXISTS (SELECT FROM node WHERE NOT fenced) THEN RETURN 'alive'; END IF;
  IF NOT EXISTS (SELECT FROM topic) AND EXISTS (SELECT FROM document d WHERE version > 0
      AND NOT EXISTS (SELECT FROM unnest(docs, contents) u(d, c) WHERE u.d = d.name AND u.c = d.content)) THEN
    RETURN 'documents'; END IF;
  IF cardinality(ti) > 0 THEN
    made := import_topics_v1(ti, called, counts, sid, pt, pp, starts, ends, epochs, numbers, docs, contents, ids_below);
  ELSIF EXISTS (SELECT FROM topic) THEN
    made := 'taken';
  ELSE
    PERFORM put_document_v1(u.d, 0, u.c) FROM unnest(docs, contents) u(d, c);
    UPDATE fleet SET producer_ids_below = greatest(producer_ids_below, ids_below);
    made := 'ok';
  END IF;
  -- A node that was fenced may have set one since.
  IF made = 'ok' AND EXISTS (SELECT FROM unnest(docs, contents) u(d, c)
      WHERE NOT EXISTS (SELECT FROM document WHERE name = u.d AND content = u.c)) THEN
    RAISE EXCEPTION 'documents were set meanwhile' USING ERRCODE = 'serialization_failure'; END IF;
  RETURN made;
END $$;
