-- What the owner of a shard takes for it from producers. Beside the shards, so that a commit never waits for it.
CREATE TABLE shard_load (
  shard_id int PRIMARY KEY REFERENCES shard,
  bytes_per_second bigint NOT NULL CHECK (bytes_per_second >= 0)
) WITH (fillfactor = 50);

CREATE FUNCTION report_loads_v1(me int, inc bigint, sid int[], rates bigint[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO shard_load SELECT s.shard_id, u.rate FROM unnest(sid, rates) u(id, rate)
      JOIN shard s ON s.shard_id = u.id AND s.owner = me AND s.incarnation = inc ORDER BY s.shard_id
    ON CONFLICT (shard_id) DO UPDATE SET bytes_per_second = excluded.bytes_per_second
      WHERE shard_load.bytes_per_second <> excluded.bytes_per_second
$$;
