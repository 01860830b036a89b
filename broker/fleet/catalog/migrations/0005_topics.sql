-- Topics, all or none, together with the settings that they need: 'ok', 'already' for the same again, 'taken' when
-- another topic has one of the names, 'changed' when the settings are not those that `before` counts.
CREATE FUNCTION create_topics_v1(ti uuid[], called text[], counts int[], sid int[], doc text, before bigint, body bytea)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE same int;
BEGIN
  PERFORM 1 FROM fleet FOR UPDATE;
  SELECT count(*) INTO same FROM topic JOIN unnest(ti, called) u(ti, called) ON topic_id = u.ti AND name = u.called;
  IF same = cardinality(ti) THEN RETURN 'already'; END IF;
  IF EXISTS (SELECT FROM topic WHERE name = ANY (called) OR topic_id = ANY (ti)) THEN RETURN 'taken'; END IF;
  IF body IS NOT NULL AND NOT put_document_v1(doc, before, body) THEN RETURN 'changed'; END IF;
  INSERT INTO topic SELECT u.ti, u.called, u.n FROM unnest(ti, called, counts) u(ti, called, n);
  -- The shards of all partitions one after the other: those of a topic begin behind those of the ones before it.
  INSERT INTO part SELECT t.ti, k - 1, sid[t.behind + k]
    FROM (SELECT u.ti, u.n, coalesce(sum(u.n) OVER (ORDER BY u.at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::int
        AS behind FROM unnest(ti, counts) WITH ORDINALITY u(ti, n, at)) t, generate_series(1, t.n) k;
  UPDATE fleet SET topics_version = topics_version + 1;
  PERFORM pg_notify('horolog_topics', '');
  RETURN 'ok';
END $$;
